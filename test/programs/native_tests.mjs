/** Builds and runs the C++ tests. Each build kind has a folder of its own; `plain` shares the objects of the addon. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { buildOrExit } from '../../scripts/build_progress.mjs'
import { jobs, ROOT, requireTools, runOrExit } from '../../scripts/toolchain.mjs'

const BUILD_NATIVE = join(ROOT, 'scripts', 'build_native.mjs')

const KINDS = {
  // The objects that are shipped: nothing is compiled twice, and the tested optimisation level is the shipped one.
  plain: { folder: 'build', options: [] },
  sanitize: {
    folder: 'build-native-sanitize',
    // Sanitized code is slow anyway; -O1 halves the build time.
    options: [
      '-DCMAKE_BUILD_TYPE=RelWithDebInfo',
      '-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1',
      '-DTILEWORK_SANITIZE=address,undefined',
    ],
  },
  threads: {
    folder: 'build-native-threads',
    options: ['-DCMAKE_BUILD_TYPE=RelWithDebInfo', '-DTILEWORK_SANITIZE=thread'],
  },
  // Counts ways and comparisons (native/policy/thresholds.h); -O1, as counting is what takes the time.
  counting: {
    folder: 'build-native-counting',
    options: [
      '-DCMAKE_BUILD_TYPE=Release',
      '-DCMAKE_CXX_FLAGS_RELEASE=-O1',
      '-DTILEWORK_WARNINGS_AS_ERRORS=OFF',
      '-DTILEWORK_COUNT_WAYS=ON',
    ],
  },
  // Release, as it is shipped. GCC 12 reports false warnings in std::string, so warnings are not errors here.
  arm64: {
    folder: 'build-native-arm64',
    options: [
      '-DCMAKE_BUILD_TYPE=Release',
      '-DTILEWORK_WARNINGS_AS_ERRORS=OFF',
      `-DCMAKE_TOOLCHAIN_FILE=${join(ROOT, 'cmake', 'aarch64-linux-gnu.cmake')}`,
    ],
  },
}

/**
 * Builds the tests and returns the build folder; exits where that fails. Prints a line for each of its steps.
 *
 * @param {keyof KINDS} kind
 * @param {{ targets?: readonly string[], options?: readonly string[] }} [what] - all tests by default
 */
export async function buildNativeTests(kind, { targets = ['native_tests'], options = [] } = {}) {
  requireTools()
  // cmake-js must configure the addon's folder first: it passes options that only it knows.
  if (kind === 'plain') await buildOrExit('Building the addon', process.execPath, [BUILD_NATIVE])
  const folder = join(ROOT, KINDS[kind].folder)
  const all = ['-DTILEWORK_BUILD_TESTS=ON', ...KINDS[kind].options, ...options]
  runOrExit(`Configuring the C++ tests (${kind})`, 'cmake', ['-S', ROOT, '-B', folder, ...all])
  const build = ['--build', folder, '--parallel', String(jobs()), '--target', ...targets]
  await buildOrExit(`Building ${targets.join(' and ')} (${kind})`, 'cmake', build)
  return folder
}

/**
 * Runs the tests and prints the result.
 *
 * @param {string} folder
 * @param {readonly string[]} [options] - of ctest
 * @returns {boolean} whether all passed
 */
export function runNativeTests(folder, options = []) {
  const args = ['--test-dir', folder, '--output-on-failure', '--no-tests=error', '--parallel', String(jobs())]
  return spawnSync('ctest', [...args, ...options], { stdio: 'inherit' }).status === 0
}
