/**
 * Tests tilework inside the bundle of an application: `npm run test:bundlers` packs the package, bundles one program with
 * esbuild, rollup and webpack, each as ES module and as CommonJS, and runs every bundle four times: with `prebuilds/`
 * beside it, with the binary of a platform's package beside it, with `TILEWORK_PREBUILD`, and without the addon, where the error
 * must name the cause. Prints the sizes.
 * `-- --keep-prebuilds` packs the binaries that an earlier run has built.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import commonjs from '@rollup/plugin-commonjs'
import { nodeResolve } from '@rollup/plugin-node-resolve'
import { build as esbuild } from 'esbuild'
import { rollup } from 'rollup'
import webpack from 'webpack'
import { ROOT } from '../../scripts/toolchain.mjs'
import { pack, run, step } from './packed.mjs'

/** Reorders by the addon, writes and opens files and searches a pattern, because formats and search load on demand. */
const PROGRAM = `
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { convertMany, open, reorder, save, serialize, tensor, TileworkError } from 'tilework'
import { OnnxModel } from 'tilework/onnx'

async function main() {
  const pixels = tensor([1, 2, 3, 4], { dtype: 'uint8', shape: [1, 2, 1, 2], name: 'pixels' })
  const blocked = reorder(pixels, 'byxf')
  for (const format of ['npy', 'onnx', 'safetensors', 'btf']) {
    const file = await open(await serialize([blocked], { format }))
    const bytes = await file.dense(0).bytes()
    if (format === 'npy' && bytes.join() !== '1,3,2,4') throw new Error('wrong bytes: ' + bytes.join())
    if (format === 'onnx' && !(file.onnx instanceof OnnxModel)) throw new Error('two classes OnnxModel')
    file.close()
  }
  const folder = await mkdtemp(join(tmpdir(), 'tilework-bundle-'))
  await save(join(folder, 'pixels.npy'), [pixels])
  const { written } = await convertMany(join(folder, '*.npy'), { outDir: join(folder, 'out'), format: 'btf' })
  if (written !== 1) throw new Error('converted ' + written + ' files')
  await rm(folder, { recursive: true })
  return 'reordered'
}

main().catch((error) => {
  if (!(error instanceof TileworkError)) throw error
  return error.code + ' ' + error.message
}).then((text) => console.log(text))
`

const FORMATS = /** @type {const} */ (['esm', 'cjs'])
const BUNDLERS = { esbuild: withEsbuild, rollup: withRollup, webpack: withWebpack }

const work = mkdtempSync(join(tmpdir(), 'tilework-bundlers-'))
const user = join(work, 'user')
const entry = join(user, 'program.mjs')
let passed = 0
try {
  install(pack(work, { keepPrebuilds: process.argv.includes('--keep-prebuilds') }))
  for (const [name, bundle] of Object.entries(BUNDLERS)) {
    for (const format of FORMATS) {
      await step(`${name}, ${format}`, async () => {
        const out = join(work, `${name}-${format}`)
        await bundle(format, out)
        return `${Math.ceil(sizeOf(out) / 1024)} KiB`
      })
    }
  }
  // A bundle runs where the package is not installed.
  renameSync(join(user, 'node_modules'), join(work, 'modules'))
  for (const name of Object.keys(BUNDLERS)) {
    for (const format of FORMATS)
      await step(`${name}, ${format} runs`, () => tryBundle(join(work, `${name}-${format}`)))
  }
  console.log(`bundlers: ${passed} passed, 0 failed`)
} finally {
  rmSync(work, { recursive: true, force: true })
}

function install(tarball) {
  mkdirSync(user)
  writeFileSync(join(user, 'package.json'), '{ "private": true }\n')
  writeFileSync(entry, PROGRAM)
  const flags = ['--omit=dev', '--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund']
  run('npm', ['install', ...flags, tarball], { cwd: user })
}

async function withEsbuild(format, outdir) {
  await esbuild({
    entryPoints: [entry],
    outdir,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format,
    outExtension: { '.js': extension(format) },
    logLevel: 'error',
  })
}

async function withRollup(format, dir) {
  const bundle = await rollup({
    input: entry,
    plugins: [nodeResolve({ exportConditions: ['node'] }), commonjs()],
    external: /^node:/,
    onwarn: (warning) => assert.fail(warning.message),
  })
  const names = `[name]${extension(format)}`
  await bundle.write({ dir, format, entryFileNames: names, chunkFileNames: names })
  await bundle.close()
}

async function withWebpack(format, path) {
  const isModule = format === 'esm'
  const compiler = webpack({
    mode: 'production',
    target: 'node20',
    context: user,
    entry,
    experiments: { outputModule: isModule },
    output: {
      path,
      filename: `program${extension(format)}`,
      chunkFilename: `[name]${extension(format)}`,
      ...(isModule ? { module: true, chunkFormat: 'module' } : {}),
    },
  })
  const stats = await new Promise((resolve, reject) => {
    compiler.run((error, result) => (error ? reject(error) : compiler.close(() => resolve(result))))
  })
  assert.deepEqual(stats.toJson({ errors: true }).errors, [])
}

function extension(format) {
  return format === 'esm' ? '.mjs' : '.cjs'
}

/** The ways in which a bundle can run. */
function tryBundle(folder) {
  const [file] = readdirSync(folder).filter((name) => name.startsWith('program'))
  const program = join(folder, file)
  const missing = execute(program)
  assert.match(missing, /^ERR_NATIVE_LOAD .*holds no .*prebuilds/s)
  assert.match(
    execute(program, { TILEWORK_PREBUILD: join(work, 'nowhere') }),
    /^ERR_NATIVE_LOAD .*nowhere.*does not exist/s,
  )
  assert.equal(execute(program, { TILEWORK_PREBUILD: ROOT }), 'reordered\n')
  cpSync(join(ROOT, 'prebuilds'), join(folder, 'prebuilds'), { recursive: true })
  assert.equal(execute(program), 'reordered\n')
  rmSync(join(folder, 'prebuilds'), { recursive: true })
  cpSync(ownBinary(), join(folder, 'tilework.node'))
  assert.equal(execute(program), 'reordered\n')
  passed++
}

/** The binary that a package for this platform holds as `tilework.node`. */
function ownBinary() {
  const folder = join(ROOT, 'prebuilds', `${process.platform}-${process.arch}`)
  const { glibcVersionRuntime } = process.report.getReport().header
  const libc = glibcVersionRuntime === undefined ? 'musl' : 'glibc'
  return join(folder, process.platform === 'linux' ? `tilework.${libc}.node` : 'tilework.node')
}

function execute(program, env = {}) {
  const { TILEWORK_PREBUILD: _, ...inherited } = process.env
  const result = spawnSync(process.execPath, [program], { encoding: 'utf8', env: { ...inherited, ...env } })
  assert.equal(result.status, 0, result.stderr)
  return result.stdout
}

function sizeOf(folder) {
  const files = readdirSync(folder, { recursive: true }).map((name) => join(folder, String(name)))
  return files.reduce((sum, file) => sum + (statSync(file).isFile() ? statSync(file).size : 0), 0)
}
