/* image: operations on images. */
#include "ops/image.h"

const char *const op_image_states[] = {"working", "ready", "failed", NULL};
const char *const op_image_formats[] = {"auto", "oci", "docker", "tar", NULL};

/* clang-format off */
static const struct op_field image_reply[] = {
    REPLY("id", OP_STR, "Name of the image in paths and events; 'host' is the host's own.",
          .example = "im_01k4r8w2m9h5t7c3xqvd"),
    REPLY("name", OP_STR, "What people call it; empty when a newer image has the name.", .example = "team/app:1.2"),
    REPLY("owner", OP_STR, "Who made it; null: holt itself.", .nullable = true, .example = "token/tk_01k4r8w2m9h5t7c3xqvd"),
    REPLY("tenant", OP_STR, "Whose sandboxes may have it; null: all.", .nullable = true, .example = "acme"),
    REPLY("state", OP_CHOICE, "Only a ready one can be started.", .choices = op_image_states, .example = "ready"),
    REPLY("source", OP_STR, "How it came: 'pull', 'import' or 'builtin'.", .example = "pull"),
    REPLY("digest", OP_STR, "Of its manifest, or of the archive it came as; null: it has none.", .nullable = true),
    REPLY("os", OP_STR, "What it is made for.", .example = "linux"),
    REPLY("arch", OP_STR, "What it is made for.", .example = "amd64"),
    REPLY("layers", OP_INT, "How many layers it has.", .example = "3"),
    REPLY("size_bytes", OP_INT, "Of the files in its layers, which other images may share.", .example = "104857600"),
    REPLY("created_at", OP_TIME, "When it was pulled or imported; null: it was always there.", .nullable = true),
    REPLY("defaults", OP_JSON, "What its maker wants commands to have: env, entrypoint, cmd, workdir, user.", .types = "object"),
    REPLY("phase", OP_STR, "What is being done while it is 'working'.", .nullable = true, .example = "pulling"),
    REPLY("done_bytes", OP_INT, "How much of that is done.", .example = "1048576"),
    REPLY("total_bytes", OP_INT, "Of how much; 0: nobody knows.", .example = "104857600"),
    REPLY("failure", OP_STR, "Why it is 'failed'.", .nullable = true),
};

static const struct op_field image_list_fields[] = {
    FIELD(struct image_list_in, limit, OP_INT, .min = 1, .max = 1000, .preset = "100",
          .example = "20", .text = "At most this many in one page."),
    FIELD(struct image_list_in, cursor, OP_STR, .max = 64, .example = "im_01k4r8w2m9h5t7c3xqvd",
          .text = "Continue after the last page: the cursor of its reply."),
    FIELD(struct image_list_in, all, OP_BOOL, .preset = "false", .example = "true",
          .text = "Also those whose pull or import failed in the last hour, and why."),
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
          .text = "HOST[:PORT]/NAME[:TAG][@DIGEST]; without HOST the setting image_registry's."),
    FIELD(struct image_pull_in, name, OP_STR, .max = 500, .example = "app:1.2",
          .text = "What to call it here; the reference itself if absent."),
    FIELD(struct image_pull_in, wait, OP_BOOL, .preset = "true", .example = "false",
          .text = "Reply when it is ready; else at once, and its state tells the rest."),
};
const struct op op_image_pull = {
    .name = "image.pull",
    .group = "image",
    .text = "Pull an image from a registry.\n"
            "Every part is checked against its digest and unpacked in a sandbox of its own. Progress is told by "
            "image.progress events and by the image's phase, done_bytes and total_bytes.",
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
    .later = "It is on its way: 'wait' was false. Ask for it, or follow the events.",
};

static const struct op_field image_import_fields[] = {
    FIELD(struct image_import_in, name, OP_STR, .max = 500, .example = "app:1.2",
          .text = "What to call it here; if absent, what the archive says."),
    FIELD(struct image_import_in, tag, OP_STR, .max = 500, .example = "app:1.2",
          .text = "Which image, where the archive holds several."),
    FIELD(struct image_import_in, format, OP_CHOICE, .choices = op_image_formats, .preset = "auto", .example = "oci",
          .text = "An OCI layout, what 'docker save' writes, or the tar of a root directory."),
    FIELD(struct image_import_in, wait, OP_BOOL, .preset = "true", .example = "false",
          .text = "Reply when it is ready; else when the archive has arrived."),
};
const struct op op_image_import = {
    .name = "image.import",
    .group = "image",
    .text = "Import an image from an archive.\n"
            "The body is a tar, plain or compressed with gzip or zstd. It is unpacked in a sandbox of its own; what "
            "would reach outside of the image is refused.",
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
    .later = "It is on its way: 'wait' was false. Ask for it, or follow the events.",
};

const struct op op_image_remove = {
    .name = "image.remove",
    .group = "image",
    .text = "Remove an image.\n"
            "Sandboxes that run on it go on; layers go when the last of their users has gone. One that is still "
            "'working' is stopped.",
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
/* clang-format on */
