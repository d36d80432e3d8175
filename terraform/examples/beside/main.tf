# What is yours beside a cluster that Create, or the root mig, has made: it reads that root's outputs from the state.
# With an account that somebody else made (SERVICE_ACCOUNT), ids.service_account is null. Before Create, or after
# Destroy, there are no outputs, and Terraform says "Unsupported attribute": plan it while the cluster is there.

provider "google" {
  project = local._project
}

locals {
  _project = "my-project"
  _vms     = data.terraform_remote_state.cluster.outputs
}

data "terraform_remote_state" "cluster" {
  backend = "gcs"

  config = {
    bucket = "aiinfra-terraform-${local._project}"
    prefix = "my-cluster-deployment/terraform/state"
  }
}

# The VMs write their results to a bucket of yours.
resource "google_storage_bucket_iam_member" "results" {
  bucket = "my-results"
  member = "serviceAccount:${local._vms.service_account_email}"
  role   = "roles/storage.objectUser"
}

# A team may log in on VMs that act as that account.
resource "google_service_account_iam_member" "team" {
  member             = "group:ml@example.com"
  role               = "roles/iam.serviceAccountUser"
  service_account_id = local._vms.ids.service_account
}
