/** The import rules hold, and each of them refuses an import made against it. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'

const ROOT = resolve(import.meta.dirname, '../..')
const CRUISER = join(ROOT, 'node_modules/dependency-cruiser/bin/dependency-cruise.mjs')

interface Violation {
  readonly rule: { readonly name: string }
  readonly from: string
}

const folders: string[] = []
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true })
})

/** What the rules report for `lib` in `folder`: `rule: file`, sorted. */
function violations(folder: string): string[] {
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [CRUISER, '--config', join(ROOT, '.dependency-cruiser.cjs'), '--output-type', 'json', 'lib'],
    { cwd: folder, encoding: 'utf8', maxBuffer: 1 << 28 },
  )
  expect(stderr).toBe('')
  const { summary } = JSON.parse(stdout) as { summary: { violations: Violation[] } }
  const reported = summary.violations.map(({ rule, from }) => `${rule.name}: ${from}`)
  return [...new Set(reported)].sort()
}

/** A folder with a library whose files import what `imports` lists for them. */
function library(imports: Readonly<Record<string, readonly string[]>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'tilework-imports-'))
  folders.push(folder)
  writeFileSync(join(folder, 'package.json'), '{ "type": "module", "devDependencies": { "vega": "*" } }')
  for (const [path, imported] of Object.entries(imports)) {
    const lines = imported.map((name) => `import '${name}'\n`).join('')
    mkdirSync(join(folder, dirname(path)), { recursive: true })
    writeFileSync(join(folder, path), `${lines}export interface X {}\n`)
  }
  return folder
}

/** One import against every rule. The test writes the type imports of `t.ts` and `u.ts`, a second cycle. */
const BAD = {
  'lib/index.ts': [
    './a.js',
    './t.js',
    './bytes/memory.js',
    './formats/npy/write.js',
    './formats/onnx/read.js',
    './layout/draw.js',
    './models/onnx_compress/float16.js',
    './models/onnx_optimize/rewrite/rewriter.js',
  ],
  'lib/layout.ts': [],
  'lib/a.ts': ['./b.js'],
  'lib/b.ts': ['./c.js'],
  'lib/c.ts': ['./a.js'],
  'lib/t.ts': [],
  'lib/u.ts': [],
  'lib/unused.ts': [],
  'lib/bridges/one/index.ts': ['../../pipeline/open.js'],
  'lib/bytes/memory.ts': ['../tensor/tensor.js'],
  'lib/cli/main.ts': ['../formats/btf/read.js'],
  'lib/formats/btf/read.ts': ['../npy/read.js', '../../pipeline/open.js', '../../bridges/one/index.js'],
  'lib/formats/npy/read.ts': ['../../native/addon.js'],
  'lib/formats/npy/write.ts': ['../../cli/main.js'],
  'lib/formats/onnx/read.ts': [
    '../../models/onnx/model.js',
    '../../models/onnx/document/graph.js',
    '../../models/onnx/evaluate/value.js',
  ],
  'lib/layout/draw.ts': ['vega', './missing.js', '../layout.js'],
  'lib/models/onnx/document/graph.ts': ['../edit/sort.js'],
  'lib/models/onnx/edit/sort.ts': [],
  'lib/models/onnx/evaluate/value.ts': ['../document/graph.js', '../infer/infer.js'],
  'lib/models/onnx/infer/infer.ts': [],
  'lib/models/onnx/opset/convert.ts': ['../../onnx_optimize/optimize.js'],
  'lib/models/onnx_compress/float16.ts': ['../onnx_optimize/optimize.js'],
  'lib/models/onnx_optimize/optimize.ts': ['../../formats/btf/read.js'],
  'lib/models/onnx_optimize/rewrite/rewriter.ts': ['../optimize.js', '../../onnx/opset/convert.js'],
  'lib/models/onnx/model.ts': ['../../formats/btf/read.js', '../tmfile/model.js', '../../pipeline/open.js'],
  'lib/models/tmfile/model.ts': ['../../native/addon.js'],
  'lib/native/addon.ts': [],
  'lib/pipeline/open.ts': [],
  'lib/tensor/tensor.ts': ['../pipeline/open.js'],
}

/** A cycle is reported once, for the file it was entered by. */
const EXPECTED = [
  'bridges-below-pipeline: lib/bridges/one/index.ts',
  'bytes-dtypes-layouts-below-tensors: lib/bytes/memory.ts',
  'cli-uses-public-entries: lib/cli/main.ts',
  'compression-beside-optimization: lib/models/onnx_compress/float16.ts',
  'documents-below-passes: lib/models/onnx/document/graph.ts',
  'evaluation-below-inference: lib/models/onnx/evaluate/value.ts',
  'formats-are-independent: lib/formats/btf/read.ts',
  'formats-below-models: lib/formats/onnx/read.ts',
  'formats-below-pipeline: lib/formats/btf/read.ts',
  'models-are-independent: lib/models/onnx/model.ts',
  'models-are-independent: lib/models/onnx_optimize/optimize.ts',
  'models-below-optimization: lib/models/onnx/opset/convert.ts',
  'models-below-pipeline: lib/models/onnx/model.ts',
  'native-code-behind-library: lib/formats/npy/read.ts',
  'native-code-behind-library: lib/models/tmfile/model.ts',
  'no-cycles: lib/a.ts',
  'no-cycles: lib/t.ts',
  'no-development-packages: lib/layout/draw.ts',
  'no-imports-of-cli: lib/formats/npy/write.ts',
  'no-imports-of-entries: lib/layout/draw.ts',
  'no-unresolved-imports: lib/layout/draw.ts',
  'no-unused-files: lib/unused.ts',
  'rewriting-below-passes: lib/models/onnx_optimize/rewrite/rewriter.ts',
  'tensors-below-formats: lib/tensor/tensor.ts',
]

describe('import rules', () => {
  it('hold in the library', () => {
    expect(violations(ROOT)).toEqual([])
  })

  it('each refuse an import against them, cycles of type imports included', () => {
    const folder = library(BAD)
    writeFileSync(join(folder, 'lib/t.ts'), "import type { X } from './u.js'\nexport type T = X\n")
    writeFileSync(join(folder, 'lib/u.ts'), "import type { T } from './t.js'\nexport type X = T | 1\n")
    expect(violations(folder)).toEqual(EXPECTED)
  })

  it('allow imports in the direction of the data', () => {
    const folder = library({
      'lib/index.ts': ['./pipeline/open.js'],
      'lib/cli/main.ts': ['../index.js'],
      'lib/bytes/memory.ts': ['../errors.js', 'node:fs'],
      'lib/errors.ts': [],
      'lib/formats/onnx/read.ts': ['../../tensor/tensor.js'],
      'lib/models/onnx/document/model.ts': ['../../../formats/onnx/read.js'],
      'lib/models/onnx/edit/sort.ts': ['../document/model.js', '../infer/infer.js'],
      'lib/models/onnx/evaluate/value.ts': ['../document/model.js', '../../../tensor/tensor.js'],
      'lib/models/onnx/infer/infer.ts': ['../evaluate/value.js'],
      'lib/pipeline/open.ts': ['../models/onnx/edit/sort.js'],
      'lib/tensor/tensor.ts': ['../bytes/memory.js'],
    })
    expect(violations(folder)).toEqual([])
  })
})

it('one module of the suite knows the folder beside the checkout', () => {
  const files = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' })
  const naming = files.filter(
    (name) =>
      /\.m?ts$/.test(name) &&
      /['"/]shared\/(fixtures|review|spec)/.test(readFileSync(join(ROOT, 'test', name), 'utf8')),
  )
  expect(naming).toEqual(['shared_fixtures.ts'])
})
