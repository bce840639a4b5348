# docker buildx bake            builds sluice:dev for this machine and loads it into Docker
# IMAGE=registry.example.com/sluice VERSION=1.2.3 REVISION=$(git rev-parse HEAD) docker buildx bake --push release
#                               for amd64 and arm64, with an SBOM and full provenance attached; needs a builder of the driver docker-container

variable "IMAGE" { default = "sluice" }
variable "VERSION" { default = "dev" }
variable "REVISION" { default = "" }
variable "SOURCE" { default = "" }

group "default" { targets = ["sluice"] }

target "sluice" {
  context = "."
  args    = { VERSION = VERSION, REVISION = REVISION, SOURCE = SOURCE }
  tags    = ["${IMAGE}:${VERSION}"]
  output  = ["type=docker"]
}

target "release" {
  inherits  = ["sluice"]
  platforms = ["linux/amd64", "linux/arm64"]
  # A release also gets the tags 1.2 and 1. A pre-release (1.2.3-rc.1), or a VERSION that is not a version number, gets only its own tag
  tags = concat(
    ["${IMAGE}:${VERSION}"],
    [for prefix in try(slice(regex("^((\\d+)\\.\\d+)\\.\\d+$", VERSION), 0, 2), []) : "${IMAGE}:${prefix}"],
  )
  attest = ["type=sbom", "type=provenance,mode=max"]
  output = ["type=registry"]
}
