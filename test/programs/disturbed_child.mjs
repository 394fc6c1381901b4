/**
 * A process that works while another one disturbs it: kills it, truncates its input, fills its disk. Each message is a
 * job; the answer is `begin`, when all is loaded and the part of interest starts, then `end` with what came of it.
 */
import { createHash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { open, reorder, save, TileworkError } from '../../dist/index.js'
import { native } from '../../scripts/internals.mjs'

const JOBS = {
  save: saveTensors,
  read: readTensors,
  open: openAndClose,
  command: runCommand,
  look: lookAtSelf,
}

let goOn = () => undefined

process.on('message', async (job) => {
  if (job.kind === 'go on') return goOn()
  const outcome = await JOBS[job.kind](job).then(
    (value) => ({ value }),
    (error) => ({ error: errorFields(error) }),
  )
  // By the clock that all processes share.
  process.send({ end: { ...outcome, endedAt: performance.timeOrigin + performance.now() } })
})
process.on('disconnect', () => process.exit())

/** A job that `waits` goes on when it is told to, which is after the strike. */
async function begin({ waits }) {
  const toldToGoOn = new Promise((resolve) => {
    goOn = resolve
  })
  await new Promise((resolve) => process.send({ begin: true }, resolve))
  if (waits) await toldToGoOn
}

/**
 * `layout`: the tensors are reordered to it, else they are saved one by one; `whole`: the open file is saved unchanged.
 */
async function saveTensors(job) {
  const { input, target, layout, whole, openOptions, saveOptions } = job
  const file = await open(input, openOptions)
  try {
    const tensors =
      layout === undefined ? [...file.tensors] : [...file.tensors].map((t) => reorder(t, layout))
    await begin(job)
    await save(target, whole ? file : tensors, saveOptions)
  } finally {
    file.close()
  }
}

/** The bytes of all tensors as one hash, then once more: what the second reading throws is told as well. */
async function readTensors(job) {
  const { input, layout, openOptions } = job
  const file = await open(input, openOptions)
  try {
    const tensors =
      layout === undefined ? [...file.tensors] : [...file.tensors].map((t) => reorder(t, layout))
    await begin(job)
    const first = await hashOf(tensors)
    const second = await hashOf(tensors).catch((error) => ({ error: errorFields(error) }))
    return { first, second }
  } finally {
    file.close()
  }
}

async function hashOf(tensors) {
  const hash = createHash('sha256')
  for (const tensor of tensors) hash.update(await tensor.bytes())
  return hash.digest('hex')
}

async function openAndClose(job) {
  const { input, openOptions } = job
  await begin(job)
  const file = await open(input, openOptions)
  const count = file.tensors.length
  file.close()
  return count
}

/** The command line itself, in this process. */
async function runCommand(job) {
  process.argv.splice(2, process.argv.length, ...job.args)
  await begin(job)
  await import('../../dist/cli/main.js')
  return process.exitCode
}

/** What this process holds, after a collection where the process was started with one. */
async function lookAtSelf() {
  for (let i = 0; i < 3; i++) {
    globalThis.gc?.()
    await new Promise((resume) => setImmediate(resume))
  }
  return {
    mappings: native().liveMappings(),
    descriptors: process.platform === 'linux' ? readdirSync('/proc/self/fd').length : 0,
  }
}

function errorFields(error) {
  const { code, message } = error
  return {
    isOurs: error instanceof TileworkError,
    code,
    message,
    system: error.cause?.code,
    stack: error instanceof TileworkError ? undefined : error.stack,
  }
}
