/**
 * Writes docs/exports.md, every public function, class and constant by task, from the entries of `lib` and the first sentences of
 * their comments: `npm run docs:exports`. With `--check` it only compares, which a test does.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import ts from 'typescript'
import { IMPORTS } from './entries.mjs'
import { fail, ROOT } from './toolchain.mjs'

const PAGE = join(ROOT, 'docs', 'exports.md')
const LIB = join(ROOT, 'lib')

/** Tasks, each with the places of `lib` whose names serve it; the first that fits counts. */
const TASKS = [
  ['Open, check and write files', /^pipeline\/(open|save)/],
  [
    'Smaller ONNX models, and what they lose',
    /^models\/onnx_compress|^pipeline\/(calibration|compare)|^models\/openvino/,
  ],
  ['Convert and compare files', /^pipeline\/|^dtype\/bit_order/],
  ['Pictures', /^image\//],
  ['Quantized numbers', /^tensor\/(quantiz|encode_blocks)|^dtype\/block_types/],
  ['Tensors', /^(tensor|dtype)\//],
  ['Memory layouts', /^layout\//],
  ['ONNX models', /^models\/onnx(_optimize)?\/|^formats\/onnx/],
  ['Models of Tengine', /^models\/tmfile\/|^bridges\//],
  ['Many machines', /^queue\//],
  ['Files on other machines', /^bytes\/remote\//],
  ['Memory, threads, devices and errors', /./],
]

const program = ts.createProgram(
  Object.keys(IMPORTS).map((entry) => join(LIB, `${entry}.ts`)),
  { ...options(), noEmit: true },
)
const checker = program.getTypeChecker()
const made = page()
if (!process.argv.includes('--check')) writeFileSync(PAGE, made)
else if (made !== readFileSync(PAGE, 'utf8')) {
  fail('docs/exports.md differs from the source; run "npm run docs:exports".')
}

function options() {
  const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), ts.sys.readFile)
  return ts.parseJsonConfigFileContent(config, ts.sys, ROOT).options
}

function page() {
  const rows = [...exportedValues()].map(([symbol, from]) => rowOf(symbol, from))
  const sections = TASKS.map(([task]) => {
    const own = rows.filter((row) => row.task === task).toSorted((a, b) => (a.name < b.name ? -1 : 1))
    return own.length === 0
      ? fail(`No public name serves "${task}": take it out of the tasks.`)
      : `## ${task}\n\n| name | from | |\n|---|---|---|\n${own.map(lineOf).join('\n')}\n`
  })
  return `# Every public name, by task

Functions, classes and constants with the first sentence of their documentation, which has parameters, results and errors; an editor
shows it. Written by \`npm run docs:exports\`.

${sections.join('\n')}`
}

function lineOf({ name, from, sentence }) {
  return `| \`${name}\` | ${from.map((each) => `\`${each}\``).join(', ')} | ${sentence} |`
}

/** What is not only a type, with the names of the entries that export it. */
function exportedValues() {
  const found = new Map()
  for (const [entry, from] of Object.entries(IMPORTS)) {
    const file = program.getSourceFile(join(LIB, `${entry}.ts`))
    for (const symbol of checker.getExportsOfModule(checker.getSymbolAtLocation(file))) {
      const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
      if (!(target.flags & ts.SymbolFlags.Value) || isTypeOnly(symbol)) continue
      found.set(target, [...(found.get(target) ?? []), from])
    }
  }
  return found
}

function rowOf(symbol, from) {
  const { fileName } = symbol.declarations[0].getSourceFile()
  const place = relative(LIB, fileName).replaceAll(sep, '/')
  const [task] = TASKS.find(([, places]) => places.test(place))
  return { name: symbol.name, from, task, sentence: sentenceOf(symbol) }
}

function isTypeOnly(symbol) {
  return symbol.declarations.some(
    (each) => ts.isExportSpecifier(each) && (each.isTypeOnly || each.parent.parent.isTypeOnly),
  )
}

/** Of overloads the last one that has a comment: special cases come first. */
function commentOf(symbol) {
  const comments = symbol.declarations.flatMap((declaration) => {
    const signature = ts.isFunctionLike(declaration) && checker.getSignatureFromDeclaration(declaration)
    const parts = (signature || symbol).getDocumentationComment(checker)
    return parts.length === 0 ? [] : [ts.displayPartsToString(parts)]
  })
  return comments.at(-1)
}

/** The first sentence of the comment, on one line, without links of TSDoc. */
function sentenceOf(symbol) {
  const comment = commentOf(symbol)
  if (comment === undefined) return fail(`${symbol.name} is public and has no comment.`)
  const paragraph = comment.split(/\n\s*\n/)[0].replaceAll(/\s+/g, ' ')
  const [, sentence] = /^(.*?[.:](?=\s+[A-Z`]|$))/.exec(paragraph) ?? [undefined, paragraph]
  return sentence
    .replace(/:$/, ' …')
    .replaceAll(/\{@link (\w+)\}/g, '`$1`')
    .replaceAll('|', '\\|')
}
