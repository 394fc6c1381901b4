/** The loss that docs/onnx-compression.md states, measured again by the commands and the program of the page. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { runtime } from '../models/onnx_compress/onnxruntime.js'
import { documentationPages, ROOT } from './pages.js'

const PAGE = 'docs/onnx-compression.md'
const LOSS = /largest difference: ([\d.]+) % of the largest output/

const work = mkdtempSync(join(tmpdir(), 'tilework-loss-'))
afterAll(() => rmSync(work, { recursive: true, force: true }))

it.skipIf(!runtime)('is that of the page', () => {
  const { steps } = documentationPages().find(({ path }) => path === PAGE)!
  const measured = steps.findIndex(({ text }) => text.includes('largest difference'))
  const modules = join(work, 'node_modules')
  mkdirSync(modules)
  symlinkSync(ROOT, join(modules, 'tilework'))
  const installed = createRequire(resolve(process.env.TILEWORK_ONNXRUNTIME ?? '.', 'package.json'))
  symlinkSync(dirname(installed.resolve('onnxruntime-node/package.json')), join(modules, 'onnxruntime-node'))
  const command = `tilework() { "${process.execPath}" "${join(ROOT, 'dist', 'cli', 'main.js')}" "$@"; }`
  let printed = ''
  for (const { kind, text } of steps.slice(0, measured + 1)) {
    const program = join(work, kind === 'sh' ? 'step.sh' : 'step.mjs')
    writeFileSync(program, kind === 'sh' ? `${command}\n${text}` : text)
    const [runner, ...flags] = kind === 'sh' ? ['bash', '-euo', 'pipefail'] : [process.execPath]
    printed = execFileSync(runner!, [...flags, program], { cwd: work, encoding: 'utf8', stdio: 'pipe' })
  }
  const stated = readFileSync(join(ROOT, PAGE), 'utf8').match(new RegExp(`\`${LOSS.source}\``))
  const found = printed.match(LOSS)
  expect(Number(found?.[1])).toBeGreaterThan(1)
  // Processors sum products of float16 in different orders.
  expect(Math.abs(Number(found?.[1]) - Number(stated?.[1]))).toBeLessThan(0.2)
})
