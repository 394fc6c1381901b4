/**
 * Shows that faults of the world are errors with the right code, and never the end of the process: `npm run
 * test:faults`. Files that are truncated, grow, are written over or vanish while they are read; folders that vanish or
 * cannot be written to; full disks.
 *
 * All work is done by processes of their own, which the faults reach from outside, at random moments too, so that a
 * process killed by a signal would be seen.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { generator } from '../../scripts/seeded.mjs'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'
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
}

const options = new Command('npm run test:faults --')
  .description('Truncated, vanished and growing files, full disks and folders that cannot be written to.')
  .option('--rounds <n>', 'rounds of each kind of work on each kind of open file', Number, 24)
  .option('--seed <n>', 'of the moments and places', Number, 1)
  .option('--only <part...>', Object.keys(PARTS).join(', '), Object.keys(PARTS))
  .option('--in-namespace', 'used by the script itself: this process may mount disks')
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
    console.log(`${failures.length > context.told ? 'WRONG ' : 'ok    '} ${text}`)
    context.told = failures.length
  },
  told: 0,
}

if (options.inNamespace) await testDisks(context)
else for (const part of options.only) await PARTS[part](context)
for (const failure of failures) console.log(`FAILED  ${failure}`)
if (!options.inNamespace) console.log(`faults: ${failures.length} failed (seed ${options.seed})`)
process.exitCode = failures.length === 0 ? 0 : 1

/** In a mount namespace of its own, which goes with the process, so that no disk stays mounted whatever happens. */
async function testDisksInNamespace({ fail }) {
  // Root keeps its rights to devices, which a user who is root inside of the namespace only does not have.
  const isRoot = process.getuid() === 0
  const [command, ...args] = ['unshare', ...(isRoot ? [] : ['--map-root-user']), '--mount']
  if (spawnSync(command, [...args, 'mount', '-t', 'tmpfs', 'none', '/mnt']).status !== 0) {
    console.log('skip   disks: mounting needs Linux, and root or user namespaces')
    return
  }
  const script = [process.execPath, SCRIPT, '--in-namespace', '--seed', String(options.seed)]
  const { status } = spawnSync(command, [...args, ...script], { stdio: 'inherit' })
  if (status !== 0) fail('disks: see above')
}
