/**
 * Injects file system faults and checks that each is an error with the right code, never a crash: `npm run test:faults`.
 * Files are truncated, extended, overwritten or removed while they are read; folders are removed or not writable; disks
 * are full.
 *
 * The work runs in child processes, and the faults come from outside at fixed and random moments, so that a crash by a
 * signal is detected.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { generator } from '../../scripts/seeded.mjs'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'
import { testFailingCalls } from './faults/calls.mjs'
import { testChanges } from './faults/changes.mjs'
import { testClosedFolder } from './faults/closed_folder.mjs'
import { testCommands } from './faults/commands.mjs'
import { testDisks } from './faults/disks.mjs'
import { testOpening } from './faults/opening.mjs'
import { testVanishing } from './faults/vanishing.mjs'

const SCRIPT = fileURLToPath(import.meta.url)
const PARTS = {
  changes: testChanges,
  opening: testOpening,
  commands: testCommands,
  vanishing: testVanishing,
  permission: testClosedFolder,
  disks: testDisksInNamespace,
  calls: testFailingCalls,
}

const options = new Command('npm run test:faults --')
  .description(
    'Truncates, extends and removes files while they are read, fills disks, and makes folders unwritable.',
  )
  .option('--rounds <n>', 'rounds per operation and open mode', Number, 24)
  .option('--seed <n>', 'seed of the moments and offsets', Number, 1)
  .option('--only <part...>', Object.keys(PARTS).join(', '), Object.keys(PARTS))
  .option('--in-namespace', 'internal: this process runs in a mount namespace of its own')
  .parse()
  .opts()

const failures = []
const context = {
  folder: makeWorkFolder('faults'),
  rounds: options.rounds,
  random: generator(options.seed),
  fail(text) {
    failures.push(text)
  },
  note(text) {
    console.log(`${failures.length > context.reportedFailures ? 'WRONG ' : 'ok    '} ${text}`)
    context.reportedFailures = failures.length
  },
  reportedFailures: 0,
}

if (options.inNamespace) await testDisks(context)
else for (const part of options.only) await PARTS[part](context)
for (const failure of failures) console.log(`FAILED  ${failure}`)
if (!options.inNamespace) console.log(`faults: ${failures.length} failed (seed ${options.seed})`)
process.exitCode = failures.length === 0 ? 0 : 1

/** Runs in a mount namespace of its own, which ends with the process, so that no disk stays mounted. */
async function testDisksInNamespace({ fail }) {
  // Real root keeps its access to devices; a user who is root only inside the namespace has none.
  const isRoot = process.getuid() === 0
  const [command, ...args] = ['unshare', ...(isRoot ? [] : ['--map-root-user']), '--mount']
  if (spawnSync(command, [...args, 'mount', '-t', 'tmpfs', 'none', '/mnt']).status !== 0) {
    console.log('skip   disks: mounting requires Linux, and root or user namespaces')
    return
  }
  const script = [process.execPath, SCRIPT, '--in-namespace', '--seed', String(options.seed)]
  const { status } = spawnSync(command, [...args, ...script], { stdio: 'inherit' })
  if (status !== 0) fail('disks: see above')
}
