/* image: operations on images. */
#include "ops/image.h"

const char *const op_image_states[] = {"working", "ready", "failed", NULL};
const char *const op_image_formats[] = {"auto", "oci", "docker", "tar", NULL};

/* clang-format off */
static const struct op_field image_reply[] = {
    REPLY("id", OP_STR, "The image's id, used in paths and events. 'host' is this machine's own.",
          .example = "im_01k4r8w2m9h5t7c3xqvd"),
    REPLY("name", OP_STR, "Its name; empty if a newer image has taken the name.", .example = "team/app:1.2"),
    REPLY("owner", OP_STR, "The principal that created it; null: holt itself.", .nullable = true, .example = "token/tk_01k4r8w2m9h5t7c3xqvd"),
    REPLY("tenant", OP_STR, "The tenant whose sandboxes may use it; null: all tenants.", .nullable = true, .example = "acme"),
    REPLY("state", OP_CHOICE, "Its state. Sandboxes can start only from a ready one.", .choices = op_image_states, .example = "ready"),
    REPLY("source", OP_STR, "Its origin: 'pull', 'import', 'commit', 'build', 'cache' (a step of a build) or 'builtin'.", .example = "pull"),
    REPLY("digest", OP_STR, "Digest of its manifest, or of the imported archive; null: it has none.", .nullable = true),
    REPLY("os", OP_STR, "What it is made for.", .example = "linux"),
    REPLY("arch", OP_STR, "What it is made for.", .example = "amd64"),
    REPLY("layers", OP_INT, "Number of its layers.", .example = "3"),
    REPLY("size_bytes", OP_INT, "Size of its layers, which other images may share.", .example = "104857600"),
    REPLY("created_at", OP_TIME, "When it was pulled or imported; null: it is built in.", .nullable = true),
    REPLY("defaults", OP_JSON, "Defaults for commands: env, entrypoint, cmd, workdir, user.", .types = "object"),
    REPLY("phase", OP_STR, "The current step while it is 'working'.", .nullable = true, .example = "pulling"),
    REPLY("done_bytes", OP_INT, "Bytes of that step that are done.", .example = "1048576"),
    REPLY("total_bytes", OP_INT, "Bytes of that step in total; 0: unknown.", .example = "104857600"),
    REPLY("failure", OP_STR, "The reason of its failure.", .nullable = true),
};

static const struct op_field image_list_fields[] = {
    FIELD(struct image_list_in, limit, OP_INT, .min = 1, .max = 1000, .preset = "100",
          .example = "20", .text = "Maximum number of items in one page."),
    FIELD(struct image_list_in, cursor, OP_STR, .max = 64, .example = "im_01k4r8w2m9h5t7c3xqvd",
          .text = "Continue after the previous page: the cursor of its reply."),
    FIELD(struct image_list_in, all, OP_BOOL, .preset = "false", .example = "true",
          .text = "Include images whose pull or import failed in the last hour, with the reason, and those of steps of builds."),
};
const struct op op_image_list = {
    .name = "image.list",
    .group = "image",
    .text = "List the images that sandboxes can start from.",
    .method = "GET",
    .path = "/holt/v1/images",
    .verb = "image ls",
    .perm = PERM_SANDBOX_READ,
    .in = image_list_fields,
    .in_count = ARRAY_LEN(image_list_fields),
    .in_size = sizeof(struct image_list_in),
    .reply = OP_REPLY_LIST,
    .out = image_reply,
    .out_count = ARRAY_LEN(image_reply),
    .schema = "Image",
    .items = "images",
    .columns = "id,name,state,arch,layers,size_bytes,created_at",
};

static const struct op_field image_id_fields[] = {
    FIELD(struct image_id_in, id, OP_STR, .required = true, .positional = true, .min = 1,
          .max = 500, .example = "team/app:1.2", .text = "The image's id or name."),
};
const struct op op_image_get = {
    .name = "image.get",
    .group = "image",
    .text = "Show one image.",
    .method = "GET",
    .path = "/holt/v1/images/{id...}",
    .verb = "image inspect",
    .perm = PERM_SANDBOX_READ,
    .in = image_id_fields,
    .in_count = ARRAY_LEN(image_id_fields),
    .in_size = sizeof(struct image_id_in),
    .out = image_reply,
    .out_count = ARRAY_LEN(image_reply),
    .schema = "Image",
};

static const struct op_field image_pull_fields[] = {
    FIELD(struct image_pull_in, ref, OP_STR, .required = true, .positional = true, .min = 1,
          .max = 500, .example = "registry.example.org/team/app:1.2",
          .text = "HOST[:PORT]/NAME[:TAG][@DIGEST]. Default HOST: the setting 'image_registry'."),
    FIELD(struct image_pull_in, name, OP_STR, .max = 500, .example = "app:1.2",
          .text = "Name for it on this machine. Default: the reference itself."),
    FIELD(struct image_pull_in, wait, OP_BOOL, .preset = "true", .example = "false",
          .text = "Reply when it is ready. If false, reply at once; the image's state shows the progress."),
};
const struct op op_image_pull = {
    .name = "image.pull",
    .group = "image",
    .text = "Pull an image from a registry.\n"
            "Every part is checked against its digest and unpacked in a throw-away sandbox. image.progress events and "
            "the image's phase, done_bytes and total_bytes show the progress.",
    .method = "POST",
    .path = "/holt/v1/images/pull",
    .verb = "image pull",
    .perm = PERM_IMAGE_WRITE,
    .in = image_pull_fields,
    .in_count = ARRAY_LEN(image_pull_fields),
    .in_size = sizeof(struct image_pull_in),
    .out = image_reply,
    .out_count = ARRAY_LEN(image_reply),
    .schema = "Image",
    .status = 201,
    .later = "The pull or import has started: 'wait' was false. Get the image again, or follow the events.",
};

static const struct op_field image_import_fields[] = {
    FIELD(struct image_import_in, name, OP_STR, .max = 500, .example = "app:1.2",
          .text = "Name for it on this machine. Default: the name in the archive."),
    FIELD(struct image_import_in, tag, OP_STR, .max = 500, .example = "app:1.2",
          .text = "Image to import, if the archive has several."),
    FIELD(struct image_import_in, format, OP_CHOICE, .choices = op_image_formats, .preset = "auto", .example = "oci",
          .text = "Format: an OCI layout, the output of 'docker save', or a tar of a root directory."),
    FIELD(struct image_import_in, wait, OP_BOOL, .preset = "true", .example = "false",
          .text = "Reply when it is ready. If false, reply when the archive has been received."),
};
const struct op op_image_import = {
    .name = "image.import",
    .group = "image",
    .text = "Import an image from an archive.\n"
            "The body is a tar archive, plain or compressed with gzip or zstd. It is unpacked in a throw-away sandbox. "
            "Paths and links that lead out of the image are refused.",
    .method = "POST",
    .path = "/holt/v1/images/import",
    .verb = "image import",
    .perm = PERM_IMAGE_WRITE,
    .in = image_import_fields,
    .in_count = ARRAY_LEN(image_import_fields),
    .in_size = sizeof(struct image_import_in),
    .upload = "application/x-tar",
    .out = image_reply,
    .out_count = ARRAY_LEN(image_reply),
    .schema = "Image",
    .status = 201,
    .later = "The pull or import has started: 'wait' was false. Get the image again, or follow the events.",
};

const struct op op_image_remove = {
    .name = "image.remove",
    .group = "image",
    .text = "Remove an image.\n"
            "Sandboxes that use it keep running; a layer is removed when nothing uses it any more. A pull or import "
            "that is still 'working' is cancelled.",
    .method = "DELETE",
    .path = "/holt/v1/images/{id...}",
    .verb = "image rm",
    .perm = PERM_IMAGE_WRITE,
    .in = image_id_fields,
    .in_count = ARRAY_LEN(image_id_fields),
    .in_size = sizeof(struct image_id_in),
    .reply = OP_REPLY_EMPTY,
    .status = 204,
};

static const struct op_field image_commit_fields[] = {
    FIELD(struct image_commit_in, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 255,
          .example = "build", .text = "The sandbox's id or name."),
    FIELD(struct image_commit_in, image, OP_STR, .required = true, .positional = true, .min = 1, .max = 255,
          .example = "team/app:1.3", .text = "Name of the new image."),
};
const struct op op_image_commit = {
    .name = "image.commit",
    .group = "image",
    .text = "Make an image of a sandbox's files, as they are now.\n"
            "Of a sandbox of the image 'host', the new image has its changes, and needs the programs of this machine.",
    .method = "POST",
    .path = "/holt/v1/sandboxes/{id}/commit",
    .verb = "commit",
    .perm = PERM_IMAGE_WRITE,
    .in = image_commit_fields,
    .in_count = ARRAY_LEN(image_commit_fields),
    .in_size = sizeof(struct image_commit_in),
    .out = image_reply,
    .out_count = ARRAY_LEN(image_reply),
    .schema = "Image",
    .status = 201,
};
/* clang-format on */
