# The name follows the content: of everything that could be changed, one thing at a
# time is.

mock_provider "google" {
  mock_data "google_compute_image" {
    defaults = {
      self_link = "https://www.googleapis.com/compute/v1/projects/images/global/images/pytorch-v1"
    }
  }
}

run "equal_content_has_one_name_and_other_content_another" {
  command = plan

  module {
    source = "./tests/variants"
  }

  assert {
    condition = alltrue([
      alltrue([for name in values(output.names) : can(regex("^train-[0-9a-f]{8}$", name))]),
      toset(["another_address", "another_size", "another_zone", "the_first", "the_same_again"]) == toset([
        for variant, name in output.names : variant if name == output.names.the_first
      ]),
    ])
    error_message = "The names are ${jsonencode(output.names)}."
  }
  # The four that share the first one's name are no others.
  assert {
    condition     = length(distinct(values(output.names))) == length(output.names) - 4
    error_message = "Two variants share a name: ${jsonencode(output.names)}."
  }
}

run "a_newer_image_of_the_family_has_another_name" {
  command = plan

  module {
    source = "./tests/variants"
  }

  override_data {
    target = module.variant["the_first"].data.google_compute_image.boot
    values = {
      self_link = "https://www.googleapis.com/compute/v1/projects/images/global/images/pytorch-v2"
    }
  }

  assert {
    condition     = output.names.the_first != run.equal_content_has_one_name_and_other_content_another.names.the_first
    error_message = "The name is still ${output.names.the_first}."
  }
}
