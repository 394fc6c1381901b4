/** What `npm run prebuild -- --target` refuses before it builds, and what the check of a built binary refuses. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

function run(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  return spawnSync(process.execPath, args, {
    cwd: ROOT,
    encoding: 'utf8',
    env: { ...process.env, ...env },
  })
}

test('an unknown target lists the known ones', () => {
  const { status, stderr } = run(['scripts/prebuild.mjs', '--target', 'linux-x64'])
  expect(status).toBe(1)
  expect(stderr).toContain('expected one of: linux-x64-glibc, linux-x64-musl')
})

// The tools that every build needs are asked for first.
const hasCmake = spawnSync('cmake', ['--version']).status === 0
test.runIf(hasCmake)('a missing zig names its package and the variable', () => {
  const { status, stderr } = run(['scripts/prebuild.mjs', '--target', 'linux-x64-musl'], {
    TILEWORK_ZIG: '/no/zig',
  })
  expect(status).toBe(1)
  expect(stderr).toMatch(
    /zig was not found \(looked for \/no\/zig\): "node scripts\/install_zig\.mjs FOLDER".*TILEWORK_ZIG/,
  )
})

const hasReadelf = spawnSync('readelf', ['--version']).status === 0
// Of the addon of this checkout, which is built for the C library of this process.
const isGlibc = Object.hasOwn(
  (process.report.getReport() as { header: object }).header,
  'glibcVersionRuntime',
)
describe.runIf(process.platform === 'linux' && hasReadelf && isGlibc)('the check of a binary', () => {
  const check = (libc: string, maxGlibc: string) =>
    run([
      '--input-type=module',
      '-e',
      `import { checkElf } from './scripts/check_elf.mjs'
       console.log(checkElf('build/Release/tilework.node', '${libc}', '${maxGlibc}'))`,
    ])

  test('reports size, glibc and imports', () => {
    const { stdout } = check('glibc', '99')
    expect(stdout).toMatch(/^\d+ KiB, glibc [\d.]+, needs .*libc\.so\.6.*, \d+ functions of Node-API/)
  })

  test('refuses foreign libraries and a newer glibc', () => {
    expect(check('musl', '99').stderr).toMatch(/may not be shipped: it needs .*libc\.so\.6/)
    expect(check('glibc', '2.0').stderr).toMatch(/it needs glibc [\d.]+; at most 2\.0 is allowed/)
  })
})
