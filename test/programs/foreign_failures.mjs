/**
 * Tests that fail in an emulator of a platform and not on the platform itself, for foreign_suite.mjs. `title` matches the
 * whole name of a test; without it the file is not run at all. Each entry has its reason.
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
  ],
}
