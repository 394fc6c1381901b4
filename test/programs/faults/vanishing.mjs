/** Removes inputs and folders during a save. An open file outlives its name, so its bytes can still be saved. */
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DisturbedChild } from '../disturb.mjs'
import { describeOutcome, digest, LAYOUT, restore, writeInput } from './inputs.mjs'

const WORK = { 'save unchanged': { whole: true }, 'save reordered': { layout: LAYOUT } }
const OPEN = { map: {}, 'map with guard': { guard: true }, read: { mode: 'read' } }

export async function testVanishing(context) {
  const kept = join(context.folder, 'kept.btf')
  writeInput(kept)
  for (const [workName, work] of Object.entries(WORK)) {
    for (const [openName, openOptions] of Object.entries(OPEN)) {
      const job = { kind: 'save', ...work, openOptions }
      await vanish(context, { kept, job, name: `${workName}, ${openName}` })
    }
  }
  rmSync(kept)
}

async function vanish(context, { kept, job, name }) {
  const { fail, note, folder, random, rounds } = context
  const [from, to] = [join(folder, 'from'), join(folder, 'to')]
  const run = async (inject, { waits = true, afterMs = 0 } = {}) => {
    mkdirSync(from, { recursive: true })
    mkdirSync(to, { recursive: true })
    const [input, target] = [join(from, 'input.btf'), join(to, 'target.btf')]
    restore(kept, input)
    const outcome = await child.run({ ...job, input, target, waits }, inject, afterMs)
    if (outcome.signal) fail(`${name}: ${describeOutcome(outcome)}`)
    return { ...outcome, bytes: digest(target) }
  }
  const child = new DisturbedChild()
  const right = await run(undefined, { waits: false })
  if (right.error) fail(`${name}, undisturbed: ${describeOutcome(right)}`)

  const unlinked = await run(() => rmSync(from, { recursive: true }))
  if (unlinked.error || unlinked.bytes !== right.bytes)
    fail(`${name}, input gone: ${describeOutcome(unlinked)}`)

  const folderGone = await run(() => rmSync(to, { recursive: true }))
  expectSystemError(context, `${name}, folder gone before`, folderGone, ['ENOENT'])

  const tally = { failed: 0, 'ended before': 0 }
  for (let round = 0; round < rounds; round++) {
    rmSync(to, { recursive: true, force: true })
    const afterMs = random() * right.milliseconds
    const outcome = await run(() => removeFolder(to), { waits: false, afterMs })
    if (outcome.error) expectSystemError(context, `${name}, folder gone during`, outcome, ['ENOENT'])
    tally[outcome.error ? 'failed' : 'ended before']++
  }
  const missing = await child.run({
    ...job,
    input: join(from, 'no-such.btf'),
    target: join(to, 'target.btf'),
  })
  expectSystemError(context, `${name}, no input`, missing, ['ENOENT'])
  await child.close()
  for (const path of [from, to]) rmSync(path, { recursive: true, force: true })
  note(
    `${name}: vanished input saved; ${rounds} vanished folders, ${tally.failed} ERR_IO, ${tally['ended before']} ended before`,
  )
}

/** Retries where a file was added to the folder between listing and removing it. */
function removeFolder(path) {
  rmSync(path, { recursive: true, force: true, maxRetries: 10 })
}

/** @param {readonly string[]} codes allowed system error codes */
export function expectSystemError({ fail }, where, outcome, codes) {
  const { error } = outcome
  const isRight = error?.isOurs && error.code === 'ERR_IO' && codes.includes(error.system)
  const isNamed = codes.some((code) => error?.message.includes(code))
  if (!isRight || !isNamed)
    fail(`${where}: expected ERR_IO with ${codes.join(' or ')}; ${describeOutcome(outcome)}`)
}
