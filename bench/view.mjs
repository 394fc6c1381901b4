/**
 * Times `tilework view`: from the start of the command to its address, from the navigation to the first paint, to the
 * summary and to a heat map or a graph, and the memory of server and page. Needs Chromium; `TILEWORK_CHROMIUM` names it.
 */
import { spawn } from 'node:child_process'
import { closeSync, existsSync, ftruncateSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { save } from '../dist/index.js'
import { OnnxModel } from '../dist/onnx.js'
import { onnxToTmfile } from '../dist/tmfile.js'
import { peakBytes } from '../scripts/peak_memory.mjs'
import { ROOT } from '../scripts/toolchain.mjs'
import { report } from './rounds.mjs'

const MIB = 1024 * 1024
/** 40 weights of 256 MiB. */
const LARGE = { count: 40, extent: 8192 }
const NODES = 100_000

export function addView(program) {
  program
    .command('view')
    .description('the page of tilework view: time to paint and to a heat map, memory')
    .option('--rounds <n>', 'number of rounds; the best counts', Number, 3)
    .option('--json', 'print JSON')
    .action(measure)
}

async function measure({ rounds, json }) {
  const executablePath = process.env.TILEWORK_CHROMIUM ?? '/usr/bin/chromium'
  if (!existsSync(executablePath)) return console.log(`view: skipped, there is no ${executablePath}`)
  const folder = mkdtempSync(join(tmpdir(), 'tilework-bench-view-'))
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
  try {
    const rows = []
    for (const [name, path, second] of await makeFiles(folder)) {
      let best
      for (let round = 0; round < rounds; round++) {
        const found = await measureOnce(browser, path, second)
        best = best === undefined ? found : bestOf(best, found)
      }
      rows.push({ case: name, ...best })
    }
    report(rows, { json })
  } finally {
    await browser.close()
    rmSync(folder, { recursive: true })
  }
}

function bestOf(one, other) {
  return Object.fromEntries(Object.entries(one).map(([key, value]) => [key, Math.min(value, other[key])]))
}

/** Files, and the second view of each: the hash, and what is there when it is complete. */
async function makeFiles(folder) {
  const at = (name) => join(folder, name)
  makeSparse(at('large.safetensors'))
  const model = makeModel(NODES)
  await save(at('nodes.onnx'), model)
  const { model: tmfile } = await onnxToTmfile(makeModel(400))
  await save(at('model.tmfile'), tmfile)
  const heatMap = { hash: '#/tensor?file=0&tensor=3', shown: 'canvas' }
  const graph = { hash: '#/graph?file=0', shown: '.graph svg[data-visible]' }
  return [
    ['safetensors of 10 GiB', at('large.safetensors'), heatMap],
    ['ONNX of 100,000 nodes', at('nodes.onnx'), graph],
    ['tmfile of 400 nodes', at('model.tmfile'), graph],
  ]
}

/** A file whose values are holes on disk. */
function makeSparse(path) {
  const { count, extent } = LARGE
  const bytes = 4 * extent * extent
  const entries = Array.from({ length: count }, (_, at) => [
    `layers.${at}.weight`,
    { dtype: 'F32', shape: [extent, extent], data_offsets: [at * bytes, (at + 1) * bytes] },
  ])
  const header = Buffer.from(JSON.stringify(Object.fromEntries(entries)))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(header.length))
  const file = openSync(path, 'w')
  writeSync(file, Buffer.concat([length, header]))
  ftruncateSync(file, 8 + header.length + count * bytes)
  closeSync(file)
}

/** Chains of four that branch and join. */
function makeModel(nodes) {
  const model = OnnxModel.create({ opset: 17 })
  const { graph } = model
  const type = { kind: 'tensor', dtype: 'float32', shape: [1, 8, 16, 16] }
  graph.addInput('x', type)
  let last = 'x'
  for (let at = 0; at < nodes; at += 4) {
    graph.addNode({ opType: 'Relu', name: `relu${at}`, inputs: [last], outputs: [`r${at}`] })
    graph.addNode({ opType: 'Sigmoid', name: `sigmoid${at}`, inputs: [last], outputs: [`s${at}`] })
    graph.addNode({ opType: 'Tanh', name: `tanh${at}`, inputs: [`r${at}`], outputs: [`t${at}`] })
    last = `y${at}`
    graph.addNode({ opType: 'Mul', name: `mul${at}`, inputs: [`t${at}`, `s${at}`], outputs: [last] })
  }
  graph.addOutput(last, type)
  return model
}

async function measureOnce(browser, path, { hash, shown }) {
  const started = performance.now()
  const server = spawn(process.execPath, [join(ROOT, 'dist/cli/main.js'), 'view', path, '--no-open'])
  try {
    const url = String(await new Promise((resolve) => server.stdout.once('data', resolve))).trim()
    const ready = performance.now() - started
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
    let navigated = performance.now()
    await page.goto(url)
    await page.locator('.facts').first().waitFor()
    const summed = performance.now() - navigated
    const paint = await page.evaluate(
      () => performance.getEntriesByName('first-contentful-paint')[0].startTime,
    )
    navigated = performance.now()
    await page.goto(url + hash)
    await page.locator(shown).first().waitFor()
    const second = performance.now() - navigated
    await page.locator('body[aria-busy=false]').waitFor()
    const session = await page.context().newCDPSession(page)
    await session.send('Performance.enable')
    const { metrics } = await session.send('Performance.getMetrics')
    const heap = metrics.find(({ name }) => name === 'JSHeapUsedSize').value
    const peak = peakBytes(server.pid)
    await page.close()
    const times = {
      'ms to the address': ready,
      'ms to first paint': paint,
      'ms to the summary': summed,
      'ms to heat map or graph': second,
    }
    const sizes = { 'MiB server, peak': peak / MIB, 'MiB page': heap / MIB }
    return Object.fromEntries(
      Object.entries({ ...times, ...sizes }).map(([key, value]) => [key, Math.round(value)]),
    )
  } finally {
    server.kill('SIGINT')
  }
}
