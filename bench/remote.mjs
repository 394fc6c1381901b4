/**
 * Files on a server: requests, bytes and time to open them and to read one tensor, beside Python's readers on files of fsspec.
 * One server counts for both. The Python packages are not dependencies; without them their columns stay empty.
 */
import { fork, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { open } from '../dist/index.js'
import { writeFiles } from './remote_files.mjs'
import { bestOfRounds, report } from './rounds.mjs'

const SERVER = fileURLToPath(new URL('remote_server.mjs', import.meta.url))
const SCRIPT = fileURLToPath(new URL('remote.py', import.meta.url))

/** @param {import('commander').Command} program */
export function addRemote(program) {
  program
    .command('remote')
    .description('requests and bytes of reads by HTTP, beside fsspec with numpy and onnx')
    .option('--delay <ms>', 'wait of the server before each answer', Number, 0)
    .option('--rounds <n>', 'number of rounds; the best time counts', Number, 3)
    .option('--python <path>', 'Python with fsspec, aiohttp, numpy and onnx', 'python3')
    .option('--folder <path>', 'folder for the files: 450 MB, and one of 10 GB with holes', tmpdir())
    .option('--json', 'print JSON')
    .action(run)
}

async function run({ delay, rounds, python, folder: parent, json }) {
  const folder = mkdtempSync(join(parent, 'tilework-bench-'))
  const server = fork(SERVER, [folder, String(delay)])
  try {
    const [port] = await once(server, 'message')
    const base = `http://127.0.0.1:${port}`
    const cases = casesOf(await writeFiles(folder), base)
    const own = []
    for (const each of cases) own.push(await measure(each, rounds))
    const peers = inPython(python, cases, rounds)
    const counts = await (await fetch(`${base}/counts`)).json()
    const rows = cases.flatMap((each, at) =>
      [own[at], ...(peers?.[at] ?? [])].map((result) => {
        if (result.sha !== own[at].sha)
          throw new Error(`${each.format}, ${each.what}: ${result.label} read other bytes`)
        return rowOf(each, result, counts, rounds)
      }),
    )
    report(rows, { json })
  } finally {
    server.disconnect()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Cases without a name open the file only. Keys tell the server for whom to count. */
function casesOf(files, base) {
  const steps = files.flatMap(({ format, file, tensors }) => [
    { format, file, what: 'open', name: null },
    ...Object.entries(tensors).map(([what, name]) => ({ format, file, what, name })),
  ])
  return steps.map(({ file, ...step }, at) => ({ ...step, url: `${base}/${file}`, key: `case-${at}` }))
}

async function measure({ url, key, name }, rounds) {
  let bytes
  const read = async () => {
    const file = await open(`${url}?${key}-tilework`)
    bytes = name === null ? undefined : await file.dense(name).bytes()
    file.close()
  }
  const { read: seconds } = await bestOfRounds({ read }, rounds)
  return { label: 'tilework', seconds, sha: bytes ? createHash('sha256').update(bytes).digest('hex') : null }
}

function inPython(python, cases, rounds) {
  const input = JSON.stringify({ cases, rounds })
  const { status, stdout, stderr, error } = spawnSync(python, [SCRIPT], { input, encoding: 'utf8' })
  if (status === 0) return JSON.parse(stdout)
  console.error(`Python is skipped: ${python} ended with ${error?.code ?? stderr.trim().split('\n').at(-1)}.`)
  return undefined
}

/** Counts are of one round: every round makes the same requests. */
function rowOf({ format, what, key }, { label, seconds }, counts, rounds) {
  const { requests, bytes } = counts[`?${key}-${label.replaceAll(' ', '-')}`]
  return {
    format,
    what,
    reader: label,
    requests: requests / rounds,
    KiB: Math.round(bytes / rounds / 1024),
    ms: Number((seconds * 1000).toPrecision(3)),
  }
}
