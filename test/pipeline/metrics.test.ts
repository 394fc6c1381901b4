/** What Prometheus reads: the text by its own parser where Python has it, and by a strict reader always. */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { expect, it } from 'vitest'
import { serialize, startMetrics, TileworkError, tensor } from '../../lib/index.js'
import { runCli } from '../cli/run_cli.js'
import { temporaryFolder } from '../cli/temporary_folder.js'

const inFolder = temporaryFolder()

const PARSE = `
import json, sys
from prometheus_client.parser import text_string_to_metric_families as parse
print(json.dumps([[f.name, f.type, [[s.name, s.labels, s.value] for s in f.samples]] for f in parse(sys.stdin.read())]))
`
const python = process.env.TILEWORK_PYTHON ?? 'python3'
const hasParser = spawnSync(python, ['-c', 'import prometheus_client']).status === 0

/** Values by name and labels; every line must be a comment or a sample of the format. */
function read(text: string): Map<string, number> {
  expect(text.endsWith('\n')).toBe(true)
  const samples = new Map<string, number>()
  for (const line of text.slice(0, -1).split('\n')) {
    if (/^# (HELP|TYPE) [a-z_]+ .+$/.test(line)) continue
    const [, name, value] =
      /^([a-z_]+(?:\{[a-z]+="[A-Za-z0-9_.+]+"\})?) (\d+(?:\.\d+)?(?:e-\d+)?)$/.exec(line) ?? []
    expect(name, line).toBeDefined()
    expect(samples.has(name!), line).toBe(false)
    samples.set(name!, Number(value))
  }
  return samples
}

function exercise(metrics: Awaited<ReturnType<typeof startMetrics>>): void {
  metrics.fileEnded({ status: 'written', byteLength: 1000 }, 0.02)
  metrics.fileEnded({ status: 'written', byteLength: 24 }, 20)
  metrics.fileEnded({ status: 'skipped', byteLength: 7 }, 0)
  metrics.fileEnded({ status: 'failed', error: new TileworkError('ERR_TRUNCATED', 'short') }, 1)
  metrics.fileEnded({ status: 'failed', error: new Error('other') }, 1)
  metrics.queueWaited(40)
  metrics.filesLeft(5)
}

it('counts files, bytes, seconds and failures by code', async () => {
  const metrics = await startMetrics({ port: 0 })
  try {
    exercise(metrics)
    const response = await fetch(metrics.url)
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
    const samples = read(await response.text())
    expect(Object.fromEntries(samples)).toMatchObject({
      'tilework_files_total{status="written"}': 2,
      'tilework_files_total{status="skipped"}': 1,
      'tilework_files_total{status="failed"}': 2,
      'tilework_failures_total{code="ERR_TRUNCATED"}': 1,
      'tilework_failures_total{code="ERR_INTERNAL"}': 1,
      tilework_written_bytes_total: 1024,
      tilework_files_left: 5,
      'tilework_file_seconds_bucket{le="0.025"}': 2,
      'tilework_file_seconds_bucket{le="60"}': 5,
      'tilework_file_seconds_bucket{le="+Inf"}': 5,
      tilework_file_seconds_sum: 22.02,
      'tilework_queue_wait_seconds_bucket{le="15"}': 0,
      'tilework_queue_wait_seconds_bucket{le="60"}': 1,
    })
  } finally {
    await metrics.close()
  }
})

it.skipIf(!hasParser)('is read by the parser of Prometheus', async () => {
  const metrics = await startMetrics({ port: 0 })
  exercise(metrics)
  const { stdout, stderr } = spawnSync(python, ['-c', PARSE], { input: metrics.text(), encoding: 'utf8' })
  await metrics.close()
  expect(stderr).toBe('')
  const families = new Map<string, [string, [string, object, number][]]>(
    JSON.parse(stdout).map(([name, type, samples]: [string, string, []]) => [name, [type, samples]]),
  )
  expect([...families].map(([name, [type]]) => [name, type])).toEqual([
    ['tilework_files', 'counter'],
    ['tilework_failures', 'counter'],
    ['tilework_written_bytes', 'counter'],
    ['tilework_files_left', 'gauge'],
    ['tilework_file_seconds', 'histogram'],
    ['tilework_queue_wait_seconds', 'histogram'],
    ['process_cpu_seconds', 'counter'],
    ['process_resident_memory_bytes', 'gauge'],
  ])
  expect(families.get('tilework_failures')![1]).toEqual([
    ['tilework_failures_total', { code: 'ERR_TRUNCATED' }, 1],
    ['tilework_failures_total', { code: 'ERR_INTERNAL' }, 1],
  ])
})

it('answers one path, on loopback only, until it is closed', async () => {
  const metrics = await startMetrics({ port: 0 })
  const { hostname, port } = new URL(metrics.url)
  expect(hostname).toBe('127.0.0.1')
  expect((await fetch(new URL('/', metrics.url))).status).toBe(404)
  expect((await fetch(metrics.url, { method: 'POST' })).status).toBe(404)
  await expect(startMetrics({ port: Number(port) })).rejects.toMatchObject({ code: 'ERR_IO' })
  await metrics.close()
  await expect(fetch(metrics.url)).rejects.toThrow()
})

it('a run answers while it lasts', async () => {
  for (let number = 10; number < 60; number++) {
    writeFileSync(inFolder(`${number}.npy`), await serialize(tensor(Float32Array.of(1)), { format: 'npy' }))
  }
  const port = 20_000 + (process.pid % 20_000)
  const texts: Promise<string>[] = []
  const { code } = await runCli(
    [
      'convert',
      inFolder('*.npy'),
      '--out-dir',
      inFolder('out'),
      '--metrics',
      `${port}`,
      '--keep-going',
      '--json',
    ],
    {
      onOutput: (line) => {
        if (line.includes('10.npy')) texts.push(textAt(port))
      },
    },
  )
  expect(code).toBe(0)
  const [text] = await Promise.all(texts)
  expect(read(text!).get('tilework_files_total{status="written"}')).toBeGreaterThan(0)
  await expect(textAt(port)).rejects.toThrow(/ECONNREFUSED/)
  expect((await runCli(['convert', 'x.npy', '--out-dir', 'o', '--metrics', 'x'])).code).toBe(64)
})

function textAt(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    request({ port, host: '127.0.0.1', path: '/metrics', agent: false }, async (response) => {
      let text = ''
      for await (const chunk of response) text += chunk
      resolve(text)
    })
      .on('error', reject)
      .end()
  })
}
