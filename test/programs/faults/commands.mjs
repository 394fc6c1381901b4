/**
 * Changes the inputs of a running command: every output must be right or absent, the exit code must match, and the process
 * must exit by itself. Each round runs in a new process.
 */
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DisturbedChild } from '../disturb.mjs'
import { CHANGES } from './changes.mjs'
import { describeOutcome, digest, LAYOUT, restore, strayFiles, writeInput } from './inputs.mjs'

const FORMS = {
  convert: [],
  'convert --layout': ['--layout', LAYOUT],
  'convert --layout, many tensors': ['--layout', LAYOUT],
  'convert --format npz': ['--format', 'npz'],
  'convert --format safetensors --layout': ['--format', 'safetensors', '--layout', LAYOUT],
}
/** Forms of the command that are also tested with many files. */
const OF_MANY = ['convert', 'convert --layout']
const OPEN = { map: [], 'map with guard': ['--guard'], read: ['--mode', 'read'] }
/** Exit codes for a file that changed while it was read, and for one that was invalid before it was opened. */
const EXIT_CODES = [74, 2]
/** Each round starts a process, so there are fewer rounds. */
const ROUNDS_PART = 1 / 3
const MANY_FILES = 6
const TRUNCATED_FILES = ['0.btf', '3.btf']

export async function testCommands(context) {
  for (const [formName, form] of Object.entries(FORMS)) {
    for (const [openName, open] of Object.entries(OPEN)) {
      const name = `${formName}, ${openName}`
      await disturbOne(context, name, [...form, ...open], formName.endsWith('many tensors') ? 1000 : 1)
      if (OF_MANY.includes(formName)) {
        await disturbMany(context, `${name}, --out-dir`, [...form, ...open])
      }
    }
  }
}

async function disturbOne(context, name, form, tensors) {
  const folder = join(context.folder, 'command')
  mkdirSync(folder)
  const [kept, input, target] = ['kept.btf', 'input.btf', 'target.btf'].map((file) => join(folder, file))
  writeInput(kept, tensors)
  const run = (inject, afterMs) => {
    restore(kept, input)
    rmSync(target, { force: true })
    return runCommand(['convert', input, target, ...form], inject, afterMs)
  }
  const { milliseconds, value } = await run()
  if (value !== 0) context.fail(`${name}, undisturbed: exit code ${value}`)
  const right = digest(target)
  const tally = {}
  for (const { change, afterMs } of faultTimes(context, milliseconds)) {
    const outcome = await run(() => change.apply(input, context.random), afterMs)
    const where = `${name}, ${change.name} after ${afterMs.toFixed(1)} ms`
    const exit = judgeExit(context, outcome, where, tally)
    const bytes = digest(target)
    // A file that was extended or overwritten before it was opened is a valid different input.
    if (exit === 0 && change.name.startsWith('truncated') && bytes !== right) {
      context.fail(`${where}: exit code 0 with wrong bytes`)
    }
    if (exit !== 0 && bytes !== undefined) context.fail(`${where}: exit code ${exit}, and an output`)
    const stray = strayFiles(target, ['kept.btf', 'input.btf'])
    if (stray.length > 0) context.fail(`${where}: left ${stray.join(', ')}`)
    for (const file of stray) rmSync(join(folder, file))
  }
  rmSync(folder, { recursive: true })
  context.note(`${name}: ${counts(tally)}`)
}

/** Truncates two of several inputs; the outputs of the others must be written. */
async function disturbMany(context, name, form) {
  const folder = join(context.folder, 'command')
  const [inputs, out] = ['in', 'out'].map((part) => join(folder, part))
  mkdirSync(inputs, { recursive: true })
  const names = Array.from({ length: MANY_FILES }, (_, i) => `${i}.btf`)
  const kept = join(folder, 'kept.btf')
  writeInput(kept)
  const run = (inject, afterMs) => {
    for (const file of names) restore(kept, join(inputs, file))
    rmSync(out, { recursive: true, force: true })
    const paths = names.map((file) => join(inputs, file))
    const options = ['--out-dir', out, '--jobs', '2', '--keep-going', '--json', ...form]
    return runCommand(['convert', ...paths, ...options], inject, afterMs)
  }
  const { milliseconds, value } = await run()
  if (value !== 0) context.fail(`${name}, undisturbed: exit code ${value}`)
  const right = digest(join(out, names[0]))
  const tally = {}
  for (const { change, afterMs } of faultTimes(context, milliseconds)) {
    if (!change.name.startsWith('truncated')) continue
    const inject = () => {
      for (const file of TRUNCATED_FILES) change.apply(join(inputs, file), context.random)
    }
    const outcome = await run(inject, afterMs)
    const where = `${name}, ${change.name} after ${afterMs.toFixed(1)} ms`
    const exit = judgeExit(context, outcome, where, tally)
    if (exit === undefined) continue
    const found = names.map((file) => digest(join(out, file)))
    if (found.some((bytes) => bytes !== undefined && bytes !== right))
      context.fail(`${where}: an output has wrong bytes`)
    const missing = names.filter((file, i) => found[i] === undefined && !TRUNCATED_FILES.includes(file))
    if (missing.length > 0) context.fail(`${where}: ${missing.join(', ')} was not written`)
  }
  rmSync(folder, { recursive: true })
  context.note(`${name}: ${counts(tally)}`)
}

function* faultTimes({ random, rounds }, milliseconds) {
  for (let round = 0; round < Math.ceil(rounds * ROUNDS_PART); round++) {
    yield { change: CHANGES[round % CHANGES.length], afterMs: random() * milliseconds }
  }
}

async function runCommand(args, inject, afterMs) {
  const child = new DisturbedChild({ stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
  const outcome = await child.run({ kind: 'command', args }, inject, afterMs)
  await child.close()
  return outcome
}

/** @returns {number | undefined} the exit code, where it is an allowed one */
function judgeExit({ fail }, outcome, where, tally) {
  const end = outcome.signal ?? outcome.value
  tally[end] = (tally[end] ?? 0) + 1
  if (end === 0 || EXIT_CODES.includes(end)) return end
  fail(`${where}: ${typeof end === 'number' ? `exit code ${end}` : describeOutcome(outcome)}`)
  return undefined
}

function counts(tally) {
  return Object.entries(tally)
    .map(([end, count]) => `${count} with ${/^\d/.test(end) ? `exit code ${end}` : end}`)
    .join(', ')
}
