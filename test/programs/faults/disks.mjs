/**
 * Saves to full and read-only disks: ERR_IO with the system's error code, the old file unchanged, no temporary file, and
 * the space freed at once. Runs in a mount namespace of its own.
 */
import { spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readdirSync, rmSync, statfsSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { DisturbedChild } from '../disturb.mjs'
import { digest, LAYOUT, writeInput } from './inputs.mjs'
import { expectSystemError } from './vanishing.mjs'

const COMMAND = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url))
const MIB = 2 ** 20
const DISK_BYTES = 6 * MIB
const OLD_BYTES = 1 * MIB
const EXIT_IO = 74

export const SAVES = {
  'save unchanged': { whole: true },
  'save tensor by tensor': {},
  'save reordered': { layout: LAYOUT },
}

export async function testDisks(context) {
  const input = join(context.folder, 'input.btf')
  writeInput(input)
  const disk = join(context.folder, 'disk')
  mkdirSync(disk)
  const child = new DisturbedChild()
  for (const [name, mount] of Object.entries(DISKS)) {
    const unmounted = mount(context.folder, disk)
    if (unmounted !== undefined) {
      console.log(`skip   ${name}: ${unmounted}`)
      continue
    }
    for (const [workName, work] of Object.entries(SAVES)) {
      await fillDisk(context, child, { name: `${name}, ${workName}`, input, disk, work })
    }
    fillByCommand(context, { name, disk })
    if (name === 'full tmpfs') await testReadOnly(context, child, { input, disk })
    run('umount', disk)
  }
  await child.close()
}

/** A file system that can reserve space fails before the first byte; any other fails in the middle of the file. */
const DISKS = {
  'full tmpfs': (_folder, disk) => run('mount', '-t', 'tmpfs', '-o', `size=${DISK_BYTES}`, 'none', disk),
  'full ext2, which cannot reserve': (folder, disk) => {
    const image = join(folder, 'image')
    closeSync(openSync(image, 'w'))
    truncateSync(image, DISK_BYTES)
    return run('mkfs.ext2', '-q', '-m', '0', image) ?? run('mount', '-o', 'loop', image, disk)
  },
}

/** @returns {string | undefined} the reason of a failure */
function run(command, ...args) {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' })
  return status === 0 ? undefined : `${command}: ${error?.message ?? stderr.trim()}`
}

async function fillDisk(context, child, { name, input, disk, work }) {
  const target = join(disk, 'target.btf')
  writeInput(target, 1, 2, OLD_BYTES)
  const before = { digest: digest(target), free: freeBytes(disk), names: readdirSync(disk).join() }
  const outcome = await child.run({ kind: 'save', input, target, ...work })
  expectSystemError(context, name, outcome, ['ENOSPC'])
  checkDisk(context, name, disk, before)
  context.note(`${name}: ${outcome.error?.code} with ${outcome.error?.system}, old file and space as before`)
  rmSync(target)
}

function checkDisk({ fail }, name, disk, before) {
  if (digest(join(disk, 'target.btf')) !== before.digest) fail(`${name}: the old file has changed`)
  if (readdirSync(disk).join() !== before.names) fail(`${name}: left ${readdirSync(disk)}`)
  const lost = before.free - freeBytes(disk)
  if (lost > 0) fail(`${name}: ${lost} bytes of the disk were not freed`)
}

function freeBytes(path) {
  const { bfree, bsize } = statfsSync(path)
  return bfree * bsize
}

/** With many files, those that fit must be written. */
function fillByCommand({ folder, fail, note }, { name, disk }) {
  const inputs = Array.from({ length: 4 }, (_, i) => join(folder, `part-${i}.btf`))
  for (const [i, path] of inputs.entries()) writeInput(path, 1, i + 1, i === 1 ? 2 * DISK_BYTES : 0.5 * MIB)
  const args = ['convert', ...inputs, '--out-dir', disk, '--keep-going', '--json']
  const { status, stdout, signal } = spawnSync(process.execPath, [COMMAND, ...args], { encoding: 'utf8' })
  const written = readdirSync(disk).filter((file) => file.startsWith('part-'))
  const wrong = written.filter((file) => digest(join(disk, file)) !== digest(join(folder, file)))
  if (status !== EXIT_IO) fail(`${name}, many files: exit code ${status ?? signal}, not ${EXIT_IO}`)
  if (written.length !== inputs.length - 1 || wrong.length > 0) fail(`${name}, many files: wrote ${written}`)
  if (!stdout.includes('ENOSPC')) fail(`${name}, many files: ENOSPC is not reported: ${stdout}`)
  for (const path of [...inputs, ...readdirSync(disk).map((file) => join(disk, file))]) {
    rmSync(path, { recursive: true })
  }
  note(`${name}, many files: exit code ${status}, ${written.length} of ${inputs.length} fit and are written`)
}

async function testReadOnly(context, child, { input, disk }) {
  const target = join(disk, 'target.btf')
  writeInput(target, 1, 2, OLD_BYTES)
  const before = { digest: digest(target), free: freeBytes(disk), names: readdirSync(disk).join() }
  run('mount', '-o', 'remount,ro', disk)
  for (const [name, work] of Object.entries(SAVES)) {
    const outcome = await child.run({ kind: 'save', input, target, ...work })
    expectSystemError(context, `read-only disk, ${name}`, outcome, ['EROFS'])
    checkDisk(context, `read-only disk, ${name}`, disk, before)
  }
  context.note('read-only disk: ERR_IO with EROFS')
}
