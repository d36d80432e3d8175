terraform {
  required_version = ">= 1.11"

  required_providers {
    google = {
      source = "hashicorp/google"
      # 7.45 is the first whose templates take every scheduling argument of
      # flex start; 8.0 changes arguments that are used here.
      version = "~> 7.45"
    }
  }
}
