/**
 * Draws a terminal with commands and what they print as docs/terminal.svg: `node scripts/terminal_picture.mjs`, after
 * `npm run build:lib`. With `--check` it only compares, which a test does.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fail, ROOT } from './toolchain.mjs'

const PICTURE = join(ROOT, 'docs', 'terminal.svg')
const COMMANDS = [
  'inspect detector.safetensors --stats',
  'convert detector.safetensors half.npz --dtype f16',
  'diff detector.safetensors half.npz --ignore dtype --tolerance 1e-6,1e-3',
]
/** Pixels: the advance of a character of 13 pixels in the fonts below, the height of a line, and the margin. */
const [ADVANCE, LINE, MARGIN] = [7.83, 18, 16]

const folder = mkdtempSync(join(tmpdir(), 'tilework-picture-'))
try {
  await writeModel(join(folder, 'detector.safetensors'))
  const made = drawn(COMMANDS.flatMap(linesOf))
  if (!process.argv.includes('--check')) writeFileSync(PICTURE, made)
  else if (made !== readFileSync(PICTURE, 'utf8')) {
    fail('docs/terminal.svg differs from what the commands print; run "node scripts/terminal_picture.mjs".')
  }
} finally {
  rmSync(folder, { recursive: true })
}

async function writeModel(path) {
  const { save, tensor } = await import('../dist/index.js')
  const weight = (name, shape, size) => {
    const count = shape.reduce((product, extent) => product * extent, 1)
    return tensor(
      Float32Array.from({ length: count }, (_, i) => bell(i) * size),
      { shape, name },
    )
  }
  await save(path, [
    weight('backbone.conv1.weight', [64, 3, 7, 7], 0.5),
    weight('backbone.conv1.bias', [64], 1),
    weight('backbone.layer1.weight', [128, 64, 3, 3], 0.25),
    weight('head.weight', [84, 128, 1, 1], 0.5),
    weight('head.bias', [84], 2),
  ])
}

/** A number from -1.5 to 1.5, mostly near 0 as weights are: the sum of three sequences. */
function bell(i) {
  return [7919, 104729, 15485863].reduce((sum, step) => sum + ((i * step) % 1009) / 1009 - 0.5, 0)
}

/** The prompt with the command, and the lines that it prints. */
function linesOf(command, number) {
  const program = join(ROOT, 'dist', 'cli', 'main.js')
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...command.split(' ')], {
    cwd: folder,
    encoding: 'utf8',
    env: { ...process.env, NO_COLOR: '1', FORCE_COLOR: undefined },
  })
  if (status !== 0) fail(`"tilework ${command}" ended with exit code ${status}: ${stderr}`)
  const printed = `${stdout}${stderr}`.trimEnd().split('\n')
  return [...(number === 0 ? [] : ['']), `$ tilework ${command}`, ...printed]
}

function drawn(lines) {
  const width = Math.ceil(Math.max(...lines.map((line) => line.length)) * ADVANCE) + 2 * MARGIN
  const height = lines.length * LINE + 2 * MARGIN
  const rows = lines.map((line, at) => {
    const fill = line.startsWith('$') ? ' class="prompt"' : ''
    // Every row has its width, so that columns are straight in any font.
    const length = (line.length * ADVANCE).toFixed(1)
    const text = line.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
    return `<text${fill} x="${MARGIN}" y="${MARGIN + (at + 0.75) * LINE}" textLength="${length}">${text}</text>`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">
<style>
text { font: 13px ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #d6dbe4; white-space: pre }
.prompt { fill: #8fd3a8; font-weight: bold }
</style>
<rect width="${width}" height="${height}" rx="8" fill="#1b1f27" />
${rows.filter((row) => !row.includes('textLength="0.0"')).join('\n')}
</svg>
`
}
