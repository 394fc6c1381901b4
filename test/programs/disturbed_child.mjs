/**
 * A process that works while another process injects faults: kills it, truncates its input, fills its disk. Each message
 * is a job. The replies are `begin`, once everything is loaded and the tested part starts, and `end` with the result.
 */
import { createHash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { dequantize, open, reorder, save, TileworkError } from '../../dist/index.js'
import { native } from '../../scripts/internals.mjs'

const JOBS = {
  save: saveTensors,
  read: readTensors,
  open: openAndClose,
  command: runCommand,
  look: lookAtSelf,
}

let resume = () => undefined

process.on('message', async (job) => {
  if (job.kind === 'resume') return resume()
  const outcome = await JOBS[job.kind](job).then(
    (value) => ({ value }),
    (error) => ({ error: errorFields(error) }),
  )
  // Absolute time, which both processes can compare.
  process.send({ end: { ...outcome, endedAt: performance.timeOrigin + performance.now() } })
})
process.on('disconnect', () => process.exit())

/** Reports the start. A job that `waits` continues once the parent has injected the fault. */
async function begin({ waits }) {
  const resumed = new Promise((resolve) => {
    resume = resolve
  })
  await new Promise((resolve) => process.send({ begin: true }, resolve))
  if (waits) await resumed
}

/**
 * Saves the open file unchanged (`whole`; `title` is its new name in GGUF), the tensors reordered to `layout`, the numbers of their blocks
 * (`numbers`), or the tensors as they are.
 */
async function saveTensors(job) {
  const { input, target, layout, whole, numbers, title, openOptions, saveOptions } = job
  const file = await open(input, openOptions)
  try {
    let tensors = [...file.tensors]
    if (layout !== undefined) tensors = tensors.map((t) => reorder(t, layout))
    if (numbers) tensors = tensors.map((t) => dequantize(t))
    if (title !== undefined) file.gguf.metadata.set('general.name', title)
    await begin(job)
    await save(target, whole ? file : tensors, saveOptions)
  } finally {
    file.close()
  }
}

/** Hashes the bytes of all tensors, twice; reports an error of the second read too. */
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

/** Runs the command line in this process. */
async function runCommand(job) {
  process.argv.splice(2, process.argv.length, ...job.args)
  await begin(job)
  await import('../../dist/cli/main.js')
  return process.exitCode
}

/** Mappings and descriptors that this process holds, after a garbage collection where one is available. */
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
