/**
 * Changes files while they are read. Each operation must end with the right bytes, or with ERR_FILE_CHANGED and the old
 * target. A change before the operation began must always be detected.
 */
import {
  appendFileSync,
  closeSync,
  copyFileSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { seededBytes } from '../../../scripts/seeded.mjs'
import { DisturbedChild } from '../disturb.mjs'
import {
  describeOutcome,
  digest,
  INPUTS,
  LAYOUT,
  pathsIn,
  restore,
  strayFiles,
  writeInput,
} from './inputs.mjs'

const OPEN = {
  map: { mode: 'map' },
  'map with guard': { mode: 'map', guard: true },
  read: { mode: 'read' },
}
const WORK = {
  'save unchanged': { kind: 'save', whole: true },
  'save tensor by tensor': { kind: 'save' },
  'save reordered': { kind: 'save', layout: LAYOUT },
  'save with checksums': { kind: 'save', saveOptions: { format: 'npz' } },
  'bytes()': { kind: 'read' },
  'bytes() reordered': { kind: 'read', layout: LAYOUT },
}
const KIB = 2 ** 10
/** Moments are chosen up to slightly after the measured end. */
const BEYOND_END = 1.05
const MEASURED_RUNS = 3

/** Changes of the file. Truncation crashes careless readers, so it is the most frequent. */
export const CHANGES = [
  { name: 'truncated', apply: truncate },
  { name: 'truncated to nothing', apply: (path) => truncateSync(path, 0) },
  { name: 'truncated', apply: truncate },
  { name: 'grown', apply: (path, random) => appendFileSync(path, seededBytes(1 + random() * 100 * KIB, 7)) },
  { name: 'truncated', apply: truncate },
  { name: 'written over', apply: writeOver },
  { name: 'truncated', apply: truncate },
  // The open descriptor still refers to the old file, so nothing has changed for the reader.
  { name: 'replaced', apply: replace, isHarmless: true },
]

function truncate(path, random) {
  truncateSync(path, Math.floor(random() * statSync(path).size))
}

function writeOver(path) {
  const descriptor = openSync(path, 'r+')
  writeSync(descriptor, seededBytes(statSync(path).size, 9))
  closeSync(descriptor)
}

function replace(path) {
  copyFileSync(path, `${path}.new`)
  writeOver(`${path}.new`)
  renameSync(`${path}.new`, path)
}

export async function testChanges(context) {
  for (const [inputName, tensors] of Object.entries(INPUTS)) {
    const paths = prepare(join(context.folder, 'changes'), tensors)
    for (const [workName, work] of Object.entries(WORK)) {
      for (const [openName, openOptions] of Object.entries(OPEN)) {
        // Reading a mapping without `guard` may end the process by SIGBUS, as documented, so it is not tested.
        if (work.kind === 'read' && openName === 'map') continue
        const job = { ...work, openOptions, input: paths.input, target: paths.target }
        await disturb(context, { ...paths, job, name: `${workName}, ${openName}, ${inputName}` })
      }
    }
    rmSync(paths.folder, { recursive: true })
  }
}

function prepare(folder, tensors) {
  mkdirSync(folder)
  const kept = { input: join(folder, 'kept.btf'), target: join(folder, 'kept-target.btf') }
  writeInput(kept.input, tensors, 1)
  writeInput(kept.target, 1, 2)
  const inner = join(folder, 'work')
  mkdirSync(inner)
  return { folder, kept, ...pathsIn(inner) }
}

async function disturb(context, work) {
  const { random, rounds, note } = context
  let child = startChild()
  const undisturbed = await measure(child, work)
  const before = (await child.run({ kind: 'look' })).value
  const tally = { noticed: 0, 'right despite the change': 0, 'ended before': 0 }
  for (let round = 0; round < rounds; round++) {
    const change = CHANGES[round % CHANGES.length]
    // Every third change comes before the operation begins, so it must be detected.
    const waits = round % 3 === 0
    const afterMs = waits ? 0 : random() * undisturbed.milliseconds * BEYOND_END
    restoreAll(work)
    const inject = () => change.apply(work.input, random)
    const outcome = await child.run({ ...work.job, waits }, inject, afterMs)
    const where = `${work.name}, ${change.name} ${waits ? 'before' : `after ${afterMs.toFixed(1)} ms`}`
    judge(context, work, { outcome, undisturbed, where, mustBeNoticed: waits && !change.isHarmless, tally })
    if (!child.isAlive) child = startChild()
  }
  await judgeHoldings(context, child, before, work.name)
  await child.close()
  const counts = Object.entries(tally).map(([name, count]) => `${count} ${name}`)
  note(`${work.name}: ${rounds} changes, ${counts.join(', ')}`)
}

function startChild() {
  return new DisturbedChild({ execArgv: ['--expose-gc'] })
}

function restoreAll({ kept, input, target }) {
  rmSync(input, { force: true })
  restore(kept.input, input)
  restore(kept.target, target)
}

async function measure(child, work) {
  const times = []
  let value
  for (let run = 0; run < MEASURED_RUNS; run++) {
    restoreAll(work)
    const outcome = await child.run(work.job)
    if (outcome.error) throw new Error(`${work.name}, undisturbed: ${describeOutcome(outcome)}`)
    times.push(outcome.milliseconds)
    value = outcome.value
  }
  return {
    milliseconds: times.toSorted((one, other) => one - other)[1],
    value: work.job.kind === 'read' ? value.first : digest(work.target),
  }
}

function judge({ fail }, work, { outcome, undisturbed, where, mustBeNoticed, tally }) {
  const isRead = work.job.kind === 'read'
  // Reading a view of a mapping cannot report a change; the next call does.
  const error = outcome.error ?? outcome.value?.second?.error
  const result = isRead ? outcome.value?.first : digest(work.target)
  if (error) {
    if (error.code !== 'ERR_FILE_CHANGED' || !error.isOurs) fail(`${where}: ${describeOutcome({ error })}`)
    if (!isRead && result !== digest(work.kept.target)) fail(`${where}: the old target has changed`)
    tally.noticed++
  } else if (outcome.signal !== undefined) fail(`${where}: ${describeOutcome(outcome)}`)
  else {
    if (result !== undisturbed.value) fail(`${where}: succeeded with wrong bytes`)
    if (mustBeNoticed) fail(`${where}: the change was not detected`)
    tally[outcome.isInterrupted ? 'right despite the change' : 'ended before']++
  }
  const stray = strayFiles(work.target, ['input.btf'])
  if (stray.length > 0) fail(`${where}: left ${stray.join(', ')}`)
  for (const name of stray) rmSync(join(work.target, '..', name))
}

/** Failures must not leak mappings and descriptors. */
async function judgeHoldings({ fail }, child, before, name) {
  const { value } = await child.run({ kind: 'look' })
  for (const what of ['mappings', 'descriptors']) {
    if (value[what] > before[what]) fail(`${name}: ${value[what]} ${what} are held, ${before[what]} before`)
  }
}
