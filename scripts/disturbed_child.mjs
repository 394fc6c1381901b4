/**
 * A process that works while another one disturbs it: kills it, truncates its input, fills its disk. Each message is a
 * job; the answer is `begin`, when everything is loaded and the part of interest starts, then `end` with what came of it.
 */
import { createHash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { open, reorder, save, TileworkError } from '../dist/index.js'
import { native } from '../dist/native.js'

const JOBS = {
  save: saveTensors,
  read: readTensors,
  open: openAndClose,
  command: runCommand,
  look: lookAtSelf,
}

process.on('message', async (job) => {
  const outcome = await JOBS[job.kind](job).then(
    (value) => ({ value }),
    (error) => ({ error: errorFields(error) }),
  )
  // By the clock that all processes share.
  process.send({ end: { ...outcome, endedAt: performance.timeOrigin + performance.now() } })
})
process.on('disconnect', () => process.exit())

function begin() {
  return new Promise((resolve) => process.send({ begin: true }, resolve))
}

/**
 * `layout`: the tensors are reordered to it, else they are saved one by one; `whole`: the open file is saved unchanged.
 */
async function saveTensors({ input, target, layout, whole, openOptions, saveOptions }) {
  const file = await open(input, openOptions)
  try {
    const tensors =
      layout === undefined ? [...file.tensors] : [...file.tensors].map((t) => reorder(t, layout))
    await begin()
    await save(target, whole ? file : tensors, saveOptions)
  } finally {
    file.close()
  }
}

/** The bytes of all tensors as one hash, then once more: what the second reading throws is told as well. */
async function readTensors({ input, layout, openOptions }) {
  const file = await open(input, openOptions)
  try {
    const tensors =
      layout === undefined ? [...file.tensors] : [...file.tensors].map((t) => reorder(t, layout))
    await begin()
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

async function openAndClose({ input, openOptions }) {
  await begin()
  const file = await open(input, openOptions)
  const count = file.tensors.length
  file.close()
  return count
}

/** The command line itself, in this process. */
async function runCommand({ args }) {
  process.argv.splice(2, process.argv.length, ...args)
  await begin()
  await import('../dist/cli/main.js')
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
