/**
 * Every code block of README.md and docs/ runs as it stands: programs against the built package, `ts` blocks also
 * through the type checker under `strict`, commands in a shell in which `tilework` is the built command line.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import ts from 'typescript'
import { afterAll, describe, expect, test } from 'vitest'
import { documentationPages, type Page, ROOT, type Step } from './pages.js'

const work = mkdtempSync(join(tmpdir(), 'tilework-docs-'))
afterAll(() => rmSync(work, { recursive: true, force: true }))

// The package as an application has it: `import 'tilework'` and the command resolve through node_modules.
mkdirSync(join(work, 'node_modules', '.bin'), { recursive: true })
symlinkSync(ROOT, join(work, 'node_modules', 'tilework'))
symlinkSync(join(ROOT, 'node_modules', '@types'), join(work, 'node_modules', '@types'))
const command = join(work, 'node_modules', '.bin', 'tilework')
writeFileSync(
  command,
  `#!/bin/sh\nexec "${process.execPath}" "${join(ROOT, 'dist', 'cli', 'main.js')}" "$@"\n`,
)
chmodSync(command, 0o755)
const PATH = `${dirname(command)}:${dirname(process.execPath)}:${process.env.PATH}`

const pages = documentationPages()
/** Pages whose programs import sharp and onnxruntime-node. */
const WITH_PEERS = ['README.md', 'docs/image-recipes.md', 'docs/servers.md']

describe.each(pages.map((page) => [page.path, page] as const))('%s', (_, page) => {
  test('marks every block with a language', () => {
    expect(page.unknownLanguages).toEqual([])
  })

  // A page without blocks has nothing to run, which is not a test left out.
  if (page.steps.length > 0) {
    test('runs from top to bottom', () => {
      const folder = join(work, page.path.replaceAll(/[/.]/g, '_'))
      mkdirSync(folder, { recursive: true })
      if (WITH_PEERS.includes(page.path)) addStandIns(folder)
      for (const [at, step] of page.steps.entries()) runStep(page, folder, step, at)
    })
  }
})

/** Pages whose JavaScript is also what a user of TypeScript pastes under `strict`. */
const PASTED = [
  'README.md',
  'docs/getting-started.md',
  'docs/onnx-compression.md',
  'docs/recipes.md',
  'docs/servers.md',
]

test('TypeScript blocks, and JavaScript of the first pages, have the types that they use', () => {
  const files = pages.filter(hasTypeScript).flatMap(typeScriptFiles)
  expect(typeErrors(files)).toEqual([])
})

/** Packages of a reader that are not installed here: what the pages call, with shapes checked. */
function addStandIns(folder: string): void {
  for (const name of ['sharp', 'onnxruntime-node']) {
    const home = join(folder, 'node_modules', name)
    mkdirSync(home, { recursive: true })
    writeFileSync(join(home, 'package.json'), JSON.stringify({ name, type: 'module', exports: './index.js' }))
    copyFileSync(join(import.meta.dirname, 'stand_ins', `${name}.mjs`), join(home, 'index.js'))
  }
}

function runStep({ path }: Page, folder: string, { kind, text, line }: Step, at: number): void {
  try {
    if (kind === 'sh') {
      execFileSync('bash', ['-euo', 'pipefail', '-c', text], {
        cwd: folder,
        stdio: 'pipe',
        env: { ...process.env, PATH },
      })
      return
    }
    const program = join(folder, `program${at}.mjs`)
    writeFileSync(program, kind === 'ts' ? withoutTypes(text) : text)
    execFileSync(process.execPath, [program], { cwd: folder, stdio: 'pipe' })
  } catch (error) {
    const { stderr } = error as { stderr?: Buffer }
    throw new Error(`${path}:${line}: ${stderr?.toString() ?? error}`)
  }
}

function hasTypeScript({ path, steps }: Page): boolean {
  return steps.some(({ kind }) => isTyped(path, kind))
}

function isTyped(path: string, kind: Step['kind']): boolean {
  return kind === 'ts' || (kind === 'js' && PASTED.includes(path))
}

function typeScriptFiles({ path, steps }: Page): string[] {
  return steps
    .filter(({ kind }) => isTyped(path, kind))
    .map(({ text, line }) => {
      const file = join(work, `${path.replaceAll(/[/.]/g, '_')}_line${line}.mts`)
      writeFileSync(file, text)
      return file
    })
}

function withoutTypes(text: string): string {
  return ts.transpileModule(text, {
    compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext },
  }).outputText
}

function typeErrors(files: readonly string[]): string[] {
  const peers = join(work, 'peers.d.ts')
  writeFileSync(peers, "declare module 'onnxruntime-node'\ndeclare module 'sharp'\n")
  const program = ts.createProgram([...files, peers], {
    strict: true,
    noEmit: true,
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    types: ['node'],
    typeRoots: [join(work, 'node_modules', '@types')],
    skipLibCheck: true,
  })
  return ts.getPreEmitDiagnostics(program).map(({ file, start, messageText }) => {
    const line = file && start !== undefined ? file.getLineAndCharacterOfPosition(start).line + 1 : 0
    return `${file?.fileName.replace(work, '')}:${line}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`
  })
}
