/* build: operations on loadouts, and on builds of images. */
#include "ops/build.h"
#include "ops/rows.h"

const char *const op_build_states[] = {"waiting", "running", "ready", "failed", "cancelled", NULL};

/* clang-format off */
#define BUILDS "/holt/v1/builds"
#define LOADOUTS "/holt/v1/loadouts"
#define ID_EXAMPLE .example = "bd_01k4r8w2m9h5t7c3xqvd"
#define TIME_EXAMPLE .example = "2026-01-02T03:04:05.678Z"

/* --- builds --- */

static const struct op_field build_reply[] = {
    REPLY("id", OP_STR, "The build's id.", ID_EXAMPLE),
    REPLY("what", OP_STR, "What is built, in words.", .example = "loadout claude-only"),
    REPLY("name", OP_STR, "The name of its image.", .example = "loadout/claude-only:0123456789ab"),
    REPLY("state", OP_CHOICE, "Its state.", .choices = op_build_states, .example = "running"),
    REPLY("image", OP_STR, "The id of its image; null: it is not ready.", .nullable = true, .example = "im_01k4r8w2m9h5t7c3xqvd"),
    REPLY("from", OP_STR, "The image it starts from.", .example = "host"),
    REPLY("steps", OP_JSON, "Its steps: name, state (waiting, running, cached, done, failed), ms.", .types = "array"),
    REPLY("step", OP_INT, "How many steps are done.", .example = "2"),
    REPLY("step_count", OP_INT, "How many there are.", .example = "5"),
    REPLY("failure", OP_STR, "Why it failed; null: it did not.", .nullable = true),
    REPLY("owner", OP_STR, "The principal that began it.", .example = "token/tk_01k4r8w2m9h5t7c3xqvd"),
    REPLY("created_at", OP_TIME, "When it was begun.", TIME_EXAMPLE),
    REPLY("ended_at", OP_TIME, "When it ended; null: not yet.", .nullable = true, TIME_EXAMPLE),
};
#define BUILD_OUT OUT(build_reply, "Build")

static const struct op_field build_list_fields[] = {
    FIELD(struct build_list_in, limit, OP_INT, .min = 1, .max = 1000, .preset = "100", .example = "20", .text = "Maximum number of items in one page."),
    FIELD(struct build_list_in, cursor, OP_STR, .max = 64, ID_EXAMPLE, .text = "Continue after the previous page: the cursor of its reply."),
};
const struct op op_build_list = {
    .name = "build.list", .group = "build", .text = "List the builds of this holtd, oldest first; ended ones for a day.",
    .method = "GET", .path = BUILDS, .verb = "build ls", .perm = PERM_SANDBOX_READ, IN(build_list_fields, struct build_list_in),
    .reply = OP_REPLY_LIST, BUILD_OUT, .items = "builds", .columns = "id,what,state,step,step_count,name,created_at",
};

static const struct op_field build_id_fields[] = {
    FIELD(struct build_id_in, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 64, ID_EXAMPLE, .text = "The build's id."),
};
#define BUILD_ID_IN IN(build_id_fields, struct build_id_in)
const struct op op_build_get = {
    .name = "build.get", .group = "build", .text = "Show one build with its steps.",
    .method = "GET", .path = BUILDS "/{id}", .verb = "build inspect", .perm = PERM_SANDBOX_READ, BUILD_ID_IN, BUILD_OUT,
};
const struct op op_build_log = {
    .name = "build.log", .group = "build", .text = "Show the output of a build's steps: the last 64 KiB.",
    .method = "GET", .path = BUILDS "/{id}/log", .verb = "build log", .perm = PERM_SANDBOX_CONTENT, .audited = true, BUILD_ID_IN, .reply = OP_REPLY_TEXT,
};
const struct op op_build_cancel = {
    .name = "build.cancel", .group = "build", .text = "Cancel a build. The steps that were done stay in the cache.",
    .method = "POST", .path = BUILDS "/{id}/cancel", .verb = "build cancel", .perm = PERM_IMAGE_WRITE, BUILD_ID_IN, BUILD_OUT,
};

static const struct op_field image_build_fields[] = {
    FIELD(struct image_build_in, name, OP_STR, .required = true, .positional = true, .min = 1, .max = 255, .example = "team/app:1.2",
          .text = "Name of the new image."),
    FIELD(struct image_build_in, dockerfile, OP_STR, .required = true, .min = 1, .max = 1 << 18, .example = "FROM host\nRUN make\n",
          .text = "The text of the Dockerfile."),
    FIELD(struct image_build_in, context, OP_STR, .max = 255, .example = "context-1", .text = "A volume with the files that COPY takes. Default: none."),
    FIELD(struct image_build_in, args, OP_MAP, .max = 64, .example = "VERSION=1", .text = "Values of its ARGs."),
    FIELD(struct image_build_in, runtime, OP_STR, .max = 64, .example = "native", .text = "The runtime that runs its steps."),
    FIELD(struct image_build_in, network, OP_JSON, .types = "object|string",
          .text = "What RUN reaches, as of a sandbox. Default: the hosts of the setting 'build_hosts'."),
    FIELD(struct image_build_in, allow, OP_LIST, .max = 256, .example = "packages.example.com", .text = "Hosts that RUN may reach."),
    FIELD(struct image_build_in, fresh, OP_BOOL, .preset = "false", .example = "true", .text = "Run every step, also those in the cache."),
    FIELD(struct image_build_in, wait, OP_BOOL, .preset = "true", .example = "false",
          .text = "Reply when it has ended. If false, reply at once; the build shows the progress."),
};
const struct op op_image_build = {
    .name = "image.build", .group = "image",
    .text = "Build an image from a Dockerfile.\n"
            "FROM, RUN, COPY, ENV, ARG, WORKDIR, USER, CMD, ENTRYPOINT and LABEL are known; anything else is refused by its line. Each RUN and "
            "COPY is a layer that is kept, and used again while it and all above it is the same.",
    .method = "POST", .path = "/holt/v1/images/build", .verb = "image build", .perm = PERM_IMAGE_WRITE,
    IN(image_build_fields, struct image_build_in), BUILD_OUT, .status = 201, .body_max = 2 << 20,
    .later = "The build has begun: 'wait' was false. Get the build.",
};

/* --- loadouts --- */

static const struct op_field loadout_reply[] = {
    REPLY("name", OP_STR, "Its name.", .example = "claude-only"),
    REPLY("path", OP_STR, "Its file, below the loadouts of holt or of the setting 'loadouts_dir'.", .example = "profiles/claude-only.yaml"),
    REPLY("kind", OP_STR, "Its kind: 'loadout', or 'layer', a part of others.", .example = "loadout"),
    REPLY("description", OP_STR, "What it is for.", .example = "Claude Code alone."),
    REPLY("category", OP_STR, "Its category; null: none.", .nullable = true, .example = "per-provider"),
    REPLY("complexity", OP_STR, "Its complexity: minimal, standard or full; null: not said.", .nullable = true, .example = "minimal"),
    REPLY("extends", OP_LIST, "What it adds to, in order.", .example = "layers/base-dev.yaml"),
    REPLY("manifest", OP_JSON, "The declaration, as its file has it.", .types = "object", .optional = true),
};
#define LOADOUT_OUT OUT(loadout_reply, "Loadout")

static const struct op_field loadout_list_fields[] = {
    FIELD(struct loadout_list_in, category, OP_STR, .max = 64, .example = "collaboration", .text = "Only those of this category."),
    FIELD(struct loadout_list_in, complexity, OP_STR, .max = 64, .example = "minimal", .text = "Only those of this complexity."),
    FIELD(struct loadout_list_in, all, OP_BOOL, .preset = "false", .example = "true", .text = "Layers and providers too."),
};
const struct op op_loadout_list = {
    .name = "loadout.list", .group = "loadout", .text = "List the loadouts, by path.",
    .method = "GET", .path = LOADOUTS, .verb = "loadout ls", .perm = PERM_SANDBOX_READ, IN(loadout_list_fields, struct loadout_list_in),
    .reply = OP_REPLY_LIST, LOADOUT_OUT, .items = "loadouts", .columns = "name,description,category,complexity,path",
};

static const struct op_field loadout_get_fields[] = {
    FIELD(struct loadout_get_in, name, OP_STR, .required = true, .positional = true, .min = 1, .max = 255, .example = "claude-only",
          .text = "Its name or path."),
};
const struct op op_loadout_get = {
    .name = "loadout.get", .group = "loadout", .text = "Show one loadout, as it is written.",
    .method = "GET", .path = LOADOUTS "/{name...}", .verb = "loadout show", .perm = PERM_SANDBOX_READ, IN(loadout_get_fields, struct loadout_get_in),
    LOADOUT_OUT,
};

static const struct op_field registry_reply[] = {
    REPLY("version", OP_STR, "Its version.", .example = "1"),
    REPLY("frameworks", OP_JSON, "Frameworks of AIWG: name, label, description, reserved.", .types = "array"),
    REPLY("providers", OP_JSON, "Agents: name, label, layer.", .types = "array"),
    REPLY("init_scripts", OP_JSON, "Bases: name, label, description, default, layers.", .types = "array"),
    REPLY("presets", OP_JSON, "Compositions: name, label, description, init, aiwg.", .types = "array"),
};
const struct op op_loadout_registry = {
    .name = "loadout.registry", .group = "loadout", .text = "Show what loadouts are composed of.",
    .method = "GET", .path = "/holt/v1/loadout-registry", .verb = "loadout registry", .perm = PERM_SANDBOX_READ, OUT(registry_reply, "LoadoutRegistry"),
};

#define LOADOUT_REF \
    FIELD(struct loadout_ref_in, loadout, OP_STR, .positional = true, .min = 1, .max = 255, .example = "claude-only", .text = "Its name or path."), \
    FIELD(struct loadout_ref_in, manifest, OP_JSON, .types = "object|string", .text = "Instead: a declaration, as an object or as YAML."), \
    FIELD(struct loadout_ref_in, composition, OP_JSON, .types = "object", \
          .text = "Instead: parts of the registry: {init, aiwg: {frameworks, providers}}."), \
    FIELD(struct loadout_ref_in, base, OP_STR, .max = 255, .example = "debian:13", \
          .text = "The image it is built on. Default: the setting 'loadout_image'.")

static const struct op_field resolve_reply[] = {
    REPLY("name", OP_STR, "Its name.", .example = "claude-only"),
    REPLY("base", OP_STR, "The image it is built on.", .example = "host"),
    REPLY("image_name", OP_STR, "The name that its image has when it is built.", .example = "loadout/claude-only:0123456789ab"),
    REPLY("image", OP_STR, "The id of its image; null: it is not built.", .nullable = true, .example = "im_01k4r8w2m9h5t7c3xqvd"),
    REPLY("steps", OP_LIST, "The names of its steps, in order.", .example = "packages"),
    REPLY("manifest", OP_JSON, "The declaration with all that it extends.", .types = "object"),
};
static const struct op_field loadout_resolve_fields[] = {LOADOUT_REF};
const struct op op_loadout_resolve = {
    .name = "loadout.resolve", .group = "loadout", .text = "Show a loadout with all that it extends, and the steps that build it.",
    .method = "POST", .path = LOADOUTS "/resolve", .verb = "loadout resolve", .perm = PERM_SANDBOX_READ,
    IN(loadout_resolve_fields, struct loadout_ref_in), OUT(resolve_reply, "ResolvedLoadout"), .body_max = 1 << 20,
};

static const struct op_field loadout_build_fields[] = {
    LOADOUT_REF,
    FIELD(struct loadout_ref_in, runtime, OP_STR, .max = 64, .example = "native", .text = "The runtime that runs its steps."),
    FIELD(struct loadout_ref_in, fresh, OP_BOOL, .preset = "false", .example = "true", .text = "Run every step, also those in the cache."),
    FIELD(struct loadout_ref_in, wait, OP_BOOL, .preset = "true", .example = "false",
          .text = "Reply when it has ended. If false, reply at once; the build shows the progress."),
};
const struct op op_loadout_build = {
    .name = "loadout.build", .group = "loadout",
    .text = "Build the image of a loadout; sandboxes take it as 'loadout'.\n"
            "Each step runs once in a sandbox and is kept as a layer.",
    .method = "POST", .path = LOADOUTS "/build", .verb = "loadout build", .perm = PERM_IMAGE_WRITE,
    IN(loadout_build_fields, struct loadout_ref_in), BUILD_OUT, .status = 201, .body_max = 1 << 20,
    .later = "The build has begun: 'wait' was false. Get the build.",
};

static const struct op_field loadout_apply_fields[] = {
    FIELD(struct loadout_apply_in, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 255, .example = "build",
          .text = "The sandbox's id or name."),
    FIELD(struct loadout_apply_in, loadout, OP_STR, .positional = true, .min = 1, .max = 255, .example = "claude-only", .text = "Its name or path."),
    FIELD(struct loadout_apply_in, manifest, OP_JSON, .types = "object|string", .text = "Instead: a declaration, as an object or as YAML."),
    FIELD(struct loadout_apply_in, composition, OP_JSON, .types = "object",
          .text = "Instead: parts of the registry: {init, aiwg: {frameworks, providers}}."),
    FIELD(struct loadout_apply_in, wait, OP_BOOL, .preset = "true", .example = "false",
          .text = "Reply when it has ended. If false, reply at once; the build shows the progress."),
};
const struct op op_loadout_apply = {
    .name = "loadout.apply", .group = "loadout",
    .text = "Run the steps of a loadout in a sandbox that is there.\n"
            "For virtual machines, whose files are no layers. The steps reach what the sandbox reaches, and nothing is kept for others.",
    .method = "POST", .path = "/holt/v1/sandboxes/{id}/loadout", .verb = "loadout apply", .perm = PERM_IMAGE_WRITE,
    IN(loadout_apply_fields, struct loadout_apply_in), BUILD_OUT, .status = 201, .body_max = 1 << 20,
    .later = "The build has begun: 'wait' was false. Get the build.",
};
/* clang-format on */
