/** The C++ tests, each way they are built in a folder of its own; the plain ones with what the addon is made of. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { jobs, ROOT, requireTools, runOrExit } from '../../scripts/toolchain.mjs'

const BUILD_NATIVE = join(ROOT, 'scripts', 'build_native.mjs')

const KINDS = {
  // The very objects that are shipped, so that nothing is compiled twice and no other optimisation is tested.
  plain: { folder: 'build', options: [] },
  sanitize: {
    folder: 'build-native-sanitize',
    // Checked code is slow anyway; optimising it less halves the time it takes to build.
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
  // As it is shipped. GCC 12 warns of the inside of std::string then; the builds for this machine are strict.
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
 * Builds them and gives the folder; ends this process where that fails.
 *
 * @param {keyof KINDS} kind
 * @param {{ targets?: readonly string[], options?: readonly string[] }} [what] - all tests by default
 */
export function buildNativeTests(kind, { targets = ['native_tests'], options = [] } = {}) {
  requireTools()
  // cmake-js has to be the first that configures the addon's folder: it passes what only it knows.
  if (kind === 'plain') runOrExit('Building the addon', process.execPath, [BUILD_NATIVE])
  const folder = join(ROOT, KINDS[kind].folder)
  const all = ['-DTILEWORK_BUILD_TESTS=ON', ...KINDS[kind].options, ...options]
  runOrExit(`Configuring the C++ tests (${kind})`, 'cmake', ['-S', ROOT, '-B', folder, ...all])
  const build = ['--build', folder, '--parallel', String(jobs()), '--target', ...targets]
  runOrExit(`Building the C++ tests (${kind})`, 'cmake', build)
  return folder
}

/**
 * Runs them and says how that ended.
 *
 * @param {string} folder
 * @param {readonly string[]} [options] - of ctest
 * @returns {boolean} whether all passed
 */
export function runNativeTests(folder, options = []) {
  const args = ['--test-dir', folder, '--output-on-failure', '--no-tests=error', '--parallel', String(jobs())]
  return spawnSync('ctest', [...args, ...options], { stdio: 'inherit' }).status === 0
}
