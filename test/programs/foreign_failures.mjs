/**
 * Tests that fail on a platform for a reason that lies outside the project, for foreign_suite.mjs. `title` matches the whole
 * name of a test; without it the file is not run at all. Each entry has its reason.
 */
export const FAILURES = {
  'linux-x64-musl': [],
  'linux-arm64-musl': [],
  'linux-arm64-glibc': [],
  'win32-x64': [
    {
      path: 'test/bytes/hasher.test.ts',
      title: /hashes while this thread does other work/,
      reason: 'counts turns of the event loop, which were rarer in Wine (129 of 200) on a busy machine',
    },
    {
      path: 'test/bytes/life_of_memory.test.ts',
      title: /mode map reports that the file was (truncated|rewritten)/,
      reason: 'Windows lets nobody truncate or rewrite a mapped file',
    },
    {
      path: 'test/bytes/life_of_memory.test.ts',
      title: /guarded map of a truncated file/,
      reason: 'ftruncate of the file fails with UNKNOWN in Wine, so the test cannot make its file shorter',
    },
  ],
}
