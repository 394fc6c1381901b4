/**
 * Tests that fail in an emulator of a platform and not on the platform itself, for foreign_suite.mjs. `title` matches the
 * whole name of a test; without it the file is not run at all. Each entry has its reason.
 */

const IN_QEMU = [
  {
    path: 'test/package/permission.test.ts',
    reason: "Node's permission model refuses the preload by which emulated processes start others",
  },
  {
    path: 'test/native/addon.test.ts',
    title: /the features of the CPU are those that the system lists/,
    reason: 'the system lists those of the machine below qemu',
  },
  {
    path: 'test/attacks/memory_bound.test.ts',
    reason: 'the memory of the process includes that of qemu for the code it has translated',
  },
  {
    path: 'test/attacks/tmfile/mutations.test.ts',
    title: /2000 mutated files are rewritten or rejected/,
    reason: 'has a time limit of its own, 3 minutes, which qemu exceeds',
  },
  {
    path: 'test/bridges/onnx_tmfile/to_onnx_mutations.test.ts',
    title: /changed nodes are converted to models/,
    reason: 'has a time limit of its own, 2 minutes, which qemu exceeds on a busy machine',
  },
]

const NO_LINKS = 'Wine 8 reports that it has made a symbolic link, and has made none'
const NO_FETCH = "Node's fetch fails in Wine 8 with connect UNKNOWN; requests of node:http arrive"

export const FAILURES = {
  'linux-x64-musl': [],
  'linux-arm64-musl': [
    ...IN_QEMU,
    {
      path: 'test/native/load_addon.test.ts',
      title: /linux-arm64-musl\/tilework\.node|binary for another one|where npm left it out/,
      reason:
        'the addon looks for its C library in process.execPath, which is the script that starts qemu for other processes',
    },
  ],
  'linux-arm64-glibc': IN_QEMU,
  'win32-x64': [
    {
      path: 'test/package/permission.test.ts',
      title: /writes through a link only where it leads/,
      reason: NO_LINKS,
    },
    { path: 'test/pipeline/save.test.ts', title: /a symbolic link stays/, reason: NO_LINKS },
    {
      path: 'test/formats/safetensors/shard_folder.test.ts',
      title: /stay when they are links/,
      reason: NO_LINKS,
    },
    {
      path: 'test/attacks/files/saved_models.test.ts',
      title: /removes nothing that is in use, has changed, or lies elsewhere/,
      reason: NO_LINKS,
    },
    {
      path: 'test/attacks/onnx/advisories.test.ts',
      title: /symlink|no location makes a save write outside/,
      reason: NO_LINKS,
    },
    {
      path: 'test/formats/onnx/external.test.ts',
      title: /symlink/,
      reason: NO_LINKS,
    },
    {
      path: 'test/formats/onnx/write_external.test.ts',
      title: /refuses the location/,
      reason: `${NO_LINKS}; all look for that link`,
    },
    {
      path: 'test/cli/convert_many.test.ts',
      title: /takes each real file once|not even through a link/,
      reason: NO_LINKS,
    },
    {
      path: 'test/cli/usage.test.ts',
      title: /advice of the library is translated to flags/,
      reason: NO_LINKS,
    },
    { path: 'test/cli/view.test.ts', title: /serves the page/, reason: NO_FETCH },
    {
      path: 'test/view/server.test.ts',
      title: /number values, name subgraphs|when the request ends|bounded number of elements/,
      reason: NO_FETCH,
    },
    {
      path: 'test/view/server_load.test.ts',
      title:
        /drops connections that send|ends every request of a connection|infers types once|tries again|long names/,
      reason: NO_FETCH,
    },
    { path: 'test/queue/job_data.test.ts', title: /the scope of a worker .* link/, reason: NO_LINKS },
    // The package is linked into the folder of the programs.
    {
      path: 'test/docs/programs.test.ts',
      title: /runs from top to bottom|have the types that they use/,
      reason: NO_LINKS,
    },
    {
      path: 'test/pipeline/many/lists.test.ts',
      title: /a folder that cannot be read is an error/,
      reason: NO_LINKS,
    },
    {
      path: 'test/pipeline/metrics.test.ts',
      title: /counts files, bytes|answers one path/,
      reason: NO_FETCH,
    },
    { path: 'test/pipeline/save.test.ts', title: /writes to a response of node:http/, reason: NO_FETCH },
    {
      path: 'test/attacks/memory_bound.test.ts',
      reason:
        "its files are read in up to 400,000 pieces, each of which takes several calls of Wine's server; 7 of the 15 were run alone and passed",
    },
    {
      path: 'test/examples/electron.test.ts',
      title: /inspects a file without external buffers/,
      reason: 'Wine 8 makes no junctions',
    },
    {
      path: 'test/bytes/hasher.test.ts',
      title: /hashes while this thread does other work/,
      reason: 'counts turns of the event loop, which were rarer in Wine (129 of 200) on a busy machine',
    },
  ],
}
