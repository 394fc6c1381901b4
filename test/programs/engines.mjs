/**
 * Converts models between ONNX and tmfile, and compares what Tengine and onnxruntime compute from them.
 *
 *   npm run test:engines -- --tengine BUILD [--only NAME] [--direction to-tmfile] [--python PATH] [--verbose]
 *   npm run test:engines -- --tengine BUILD --direction corruptions [--count N] [--first N] [--load]
 *   npm run test:engines -- --source CHECKOUT        builds the engine first, into a temporary folder
 *
 * BUILD is a folder that `build_tengine.sh` of the fixtures made. Cases lie in ../shared/fixtures/onnx-tmfile, which is no part of
 * the repository. Each direction is a file in engines/ that exports `name` and `run(context)`.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { fail, ROOT } from '../../scripts/toolchain.mjs'
import * as corruptions from './engines/corruptions.mjs'
import { generated } from './engines/generated.mjs'
import * as rewrites from './engines/rewrites.mjs'
import * as toOnnx from './engines/to_onnx.mjs'
import * as toTmfile from './engines/to_tmfile.mjs'

const DIRECTIONS = [
  toTmfile,
  toOnnx,
  rewrites,
  corruptions,
  generated('variants', 'onnx_variants.py'),
  generated('networks', 'onnx_networks.py'),
]

const { values } = parseArgs({
  options: {
    tengine: { type: 'string' },
    source: { type: 'string' },
    fixtures: { type: 'string' },
    only: { type: 'string' },
    direction: { type: 'string' },
    python: { type: 'string' },
    count: { type: 'string' },
    first: { type: 'string' },
    load: { type: 'boolean' },
    verbose: { type: 'boolean' },
  },
})
const fixtures = resolve(values.fixtures ?? join(ROOT, '../shared/fixtures/onnx-tmfile'))
if (!existsSync(fixtures)) fail(`The cases are not in ${fixtures}; name their folder with --fixtures.`)
const folder = mkdtempSync(join(tmpdir(), 'tilework-engines-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

const build = values.tengine ?? (values.source ? buildEngine(values.source) : undefined)
const runner = build && resolve(build, 'run_tmfile')
if (!runner || !existsSync(runner))
  fail('Name a build of the engine with --tengine, or its source with --source.')

let failed = 0
for (const { name, run } of DIRECTIONS) {
  if (values.direction !== undefined && values.direction !== name) continue
  const { counts, failures } = await run({ fixtures, folder, runner, ...values })
  for (const line of failures) console.log(`  ${line}`)
  const text = Object.entries(counts).map(([what, count]) => `${count} ${what}`)
  console.log(`${name}: ${text.join(', ')}`)
  failed += failures.length
}
if (failed > 0) fail(`${failed} cases differ.`)

function buildEngine(source) {
  const target = join(folder, 'tengine')
  const { status } = spawnSync('bash', [join(fixtures, 'build_tengine.sh'), source, target], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, CONVERT: 'OFF' },
  })
  if (status !== 0) fail('The engine could not be built.')
  return target
}
