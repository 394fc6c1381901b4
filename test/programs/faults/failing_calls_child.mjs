/** Saves and converts while `failing_calls.c` lets single calls of the system fail. Prints a line for each finding. */
import { accessSync, cpSync, mkdirSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import {
  convert,
  convertMany,
  open,
  planReorder,
  reorder,
  save,
  TileworkError,
  tensor,
} from '../../../dist/index.js'
import { digest, LAYOUT, writeInput } from './inputs.mjs'

const [folder, rounds] = [process.argv[2], Number(process.argv[3])]
const KIB = 2 ** 10
/** More reads and writes than one of each. */
const INPUT_BYTES = 3000 * KIB
/** No work makes more calls, unless it repeats a failing one for ever. */
const MAX_CALLS = 5000
/** Distance of the calls that fail: 1 with the most rounds, more with fewer. */
const STEP = rounds >= 24 ? 1 : Math.ceil(24 / rounds)

const ERRORS = ['EIO', 'ENOSPC', 'EINTR', 'EAGAIN']
/** Calls that are made again after EINTR. */
const REPEATED =
  /^(read|write|pread64|pwrite64|open|openat|openat2|copy_file_range|flock|fallocate64|fsync|fdatasync|ftruncate64)$/
/** Where the old model cannot be read, nobody knows which data were its own, and they stay. */
const READS = ['open', 'fstat64', 'pread64', 'read']
/** The name stays where it cannot be removed. */
const REMOVALS = ['unlink', 'unlinkat']

const here = (name) => join(folder, name)
const input = here('input.btf')
const models = (value) =>
  ['a', 'b', 'c'].map((name) => tensor(new Float32Array(20_000).fill(value), { shape: [20_000], name }))

/** Work on a folder that begins as `old`. `main` is the file whose content decides what is there. */
const WORK = {
  'save, reordered': {
    main: 'target.btf',
    async old() {
      writeInput(here('work/target.btf'), 1, 2, 64 * KIB)
    },
    async run() {
      const file = await open(input)
      try {
        await save(here('work/target.btf'), [reorder(file.tensors.at(0), LAYOUT)])
      } finally {
        file.close()
      }
    },
  },
  'save, unchanged': {
    main: 'target.btf',
    async old() {
      writeInput(here('work/target.btf'), 1, 2, 64 * KIB)
    },
    async run() {
      const file = await open(input, { mode: 'read' })
      try {
        await save(here('work/target.btf'), file)
      } finally {
        file.close()
      }
    },
  },
  'save, external data': {
    main: 'model.onnx',
    old: () => save(here('work/model.onnx'), models(1), { external: { shardBytes: 90_000 } }),
    run: () => save(here('work/model.onnx'), models(2), { external: { shardBytes: 90_000 } }),
  },
  'save, shards': {
    main: 'model.safetensors.index.json',
    old: () => save(here('work/model.safetensors.index.json'), models(1), { maxShardBytes: 90_000 }),
    run: () => save(here('work/model.safetensors.index.json'), models(2), { maxShardBytes: 90_000 }),
  },
  convert: {
    main: 'target.npz',
    old: () => save(here('work/target.npz'), models(1)),
    run: () => convert(input, here('work/target.npz'), { layout: LAYOUT }),
  },
  convertMany: {
    main: 'input.npy',
    old: () => save(here('work/input.npy'), models(1).slice(0, 1)),
    async run() {
      const { failures } = await convertMany([input], {
        outDir: here('work'),
        format: 'npy',
        manifest: false,
      })
      if (failures.length > 0) throw failures[0].error ?? new Error(JSON.stringify(failures[0]))
    },
  },
}

writeInput(input, 1, 1, INPUT_BYTES)
// First, while the pool has no thread yet.
await refuseThreads()
for (const [name, work] of Object.entries(WORK)) await failEveryCall(name, work)

async function failEveryCall(name, work) {
  reset()
  await work.old()
  cpSync(here('work'), here('old'), { recursive: true })
  const old = await contentOf(work.main)
  await work.run()
  const state = { old, new: await contentOf(work.main) }
  const names = readdirSync(here('work')).length
  const descriptors = countDescriptors()
  const tally = { faults: 0, failed: 0, new: 0 }
  const calls = new Set()
  const kinds = [...ERRORS, 'short']
  for (const [index, kind] of kinds.entries()) {
    for (let n = 1 + (index % STEP); n < MAX_CALLS; n += STEP) {
      restoreOld()
      arm(kind, n)
      const error = await work.run().then(
        () => undefined,
        (reason) => reason,
      )
      const call = disarm()
      if (call === undefined) break
      // Not a failure: it says that somebody else has the lock.
      if (kind === 'EAGAIN' && call === 'flock') continue
      calls.add(call)
      tally.faults++
      tally[error === undefined ? 'new' : 'failed']++
      const where = `${name}, ${kind} at call ${n} (${call})`
      await judge(where, { kind, call, error, work, state, names })
    }
  }
  // Collections close what only a finalizer can.
  for (let i = 0; i < 3; i++) {
    globalThis.gc()
    await new Promise((resume) => setImmediate(resume))
  }
  if (countDescriptors() > descriptors)
    console.log(`${name}: ${countDescriptors()} descriptors are open, ${descriptors} before`)
  const counts = `${tally.faults} faults in ${calls.size} kinds of calls, ${tally.failed} errors, ${tally.new} saved`
  console.log(`ok ${name}: ${counts}`)
}

/** The names in the folder. A running fsync of another file may hold a temporary one a little longer. */
async function filesNow(names) {
  for (let tries = 0; tries < 50 && readdirSync(here('work')).length !== names; tries++)
    await new Promise((resume) => setTimeout(resume, 2))
  return readdirSync(here('work'))
}

async function judge(where, { kind, call, error, work, state, names }) {
  const content = await contentOf(work.main)
  if (error === undefined) {
    if (content !== state.new) console.log(`${where}: succeeded with wrong content ${content}`)
  } else {
    const number = kind === 'short' ? 'no error' : kind
    const told = `${error.code} ${error.message} ${error.cause?.code}`
    if (!(error instanceof TileworkError)) console.log(`${where}: ${error.stack}`)
    else if (error.code === 'ERR_INTERNAL' || !told.includes(number)) console.log(`${where}: ${told}`)
    if (kind === 'EINTR' && REPEATED.test(call)) console.log(`${where}: was not made again: ${told}`)
    if (content !== state.old && content !== state.new) console.log(`${where}: content ${content}`)
  }
  const found = await filesNow(names)
  // A journal lists what could not be removed, for the next save.
  const hasJournal = found.some((file) => file.endsWith('.tilework-save'))
  const isUnread = error === undefined && READS.includes(call) && !hasTemporary(found)
  if (found.length !== names && !REMOVALS.includes(call) && !hasJournal && !isUnread) {
    const isOld = content === state.old && found.length === readdirSync(here('old')).length
    if (!isOld) console.log(`${where}: left ${found.join(', ')}`)
  }
  await work.run().catch((reason) => console.log(`${where}: the next save: ${reason.message}`))
  const after = readdirSync(here('work'))
  if ((await contentOf(work.main)) !== state.new) console.log(`${where}: the next save wrote other content`)
  if (after.length !== names && !(isUnread && !hasTemporary(after)))
    console.log(`${where}: after the next save there are ${after.join(', ')}`)
}

function hasTemporary(names) {
  return names.some((name) => name.endsWith('.tilework-tmp'))
}

/** A thread that cannot start is an error of the system, or the caller works alone. */
async function refuseThreads() {
  reset()
  const plan = planReorder({ dtype: 'float32', shape: [1, 64, 512, 512], from: 'bfyx', to: LAYOUT })
  const [source, destination] = [plan.sourceBytes, plan.destinationBytes].map((size) => new Uint8Array(size))
  arm('threads', 1)
  plan.runSync(source, destination)
  const job = await WORK['save, reordered'].run().then(
    () => 'saved',
    (error) => error,
  )
  const call = disarm()
  if (call === undefined) console.log('threads: none was started')
  else if (!(job instanceof TileworkError) || !job.message.includes('EAGAIN'))
    console.log(`threads: ${job?.stack ?? job}`)
  if (readdirSync(here('work')).length > 0) console.log(`threads: left ${readdirSync(here('work'))}`)
  await WORK['save, reordered'].run()
  await plan.run(source, destination)
  console.log('ok no thread starts: an error with EAGAIN, synchronous runs work')
}

function reset() {
  for (const name of ['work', 'old']) rmSync(here(name), { recursive: true, force: true })
  mkdirSync(here('work'))
}

function restoreOld() {
  rmSync(here('work'), { recursive: true })
  cpSync(here('old'), here('work'), { recursive: true })
}

/** Digest of the main file and, for models of several files, of the values. */
async function contentOf(main) {
  try {
    const file = await open(here(`work/${main}`), { level: 'strict', mode: 'read' })
    try {
      const values = []
      for (const each of file.tensors) {
        if (!each.hasData) return 'without data'
        values.push(
          Buffer.from(await each.bytes())
            .subarray(0, 4096)
            .toString('base64'),
        )
      }
      return `${main.endsWith('btf') ? digest(here(`work/${main}`)) : ''}${values.join()}`
    } finally {
      file.close()
    }
  } catch (error) {
    return error.message
  }
}

function countDescriptors() {
  return readdirSync('/proc/self/fd').length
}

function arm(kind, n) {
  const number = constants.errno[kind]
  accessSync(`/tilework-fault/${number ?? kind}/${n}${here('work')}`)
}

/** @returns {string | undefined} the call that failed */
function disarm() {
  try {
    accessSync('/tilework-fault/off')
  } catch {
    return undefined
  }
  return readlinkSync('/tilework-fault/hit')
}
