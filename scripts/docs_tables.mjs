/**
 * Writes the tables of docs/limits-and-errors.md from the source: every error code with its sentence, and
 * every limit with its value and reason. `npm run docs:tables` writes the page; with `--check` it only compares, which a
 * test does, so that the page cannot differ from the code.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import ts from 'typescript'
import { fail, ROOT } from './toolchain.mjs'

const PAGE = join(ROOT, 'docs', 'limits-and-errors.md')
/** Names of constants that bound what is read or accepted; MAX_UINT32 and the like are bounds of a number type. */
const LIMIT_NAME = /^(MAX_(?!U?INT\d)\w+|(?!U?INT\d)\w+_LIMIT(_IN_FILES)?)$/
/** Objects whose properties are the default limits of a format, for `limits` of `open`. */
const DEFAULTS_NAME = /^DEFAULT_(\w+_)?LIMITS$/
const LIBRARY = join(ROOT, 'lib')
/** Files that the native core shares: each of their constants is a limit, whatever its name. */
const SHARED_LIMITS = new Set(['native/limits.ts', 'layout/limits.ts'])

const sources = readdirSync(LIBRARY, { recursive: true, encoding: 'utf8' })
  .map((path) => path.replaceAll(sep, '/'))
  .filter((path) => path.endsWith('.ts'))
  .toSorted()
  .map((path) => parse(join(LIBRARY, path)))

const written = readFileSync(PAGE, 'utf8')
const made = ['codes', 'limits'].reduce(
  (page, name) => replaceBetween(page, name, name === 'codes' ? codeTable() : limitTables()),
  written,
)
if (process.argv.includes('--check')) {
  if (made !== written) fail('docs/limits-and-errors.md differs from the source; run "npm run docs:tables".')
} else {
  writeFileSync(PAGE, made)
}

function parse(path) {
  return ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true)
}

function replaceBetween(page, name, table) {
  const [start, end] = [`<!-- ${name}: generated -->`, `<!-- ${name}: end -->`]
  const [from, to] = [page.indexOf(start), page.indexOf(end)]
  if (from < 0 || to < from) fail(`docs/limits-and-errors.md has no "${start}" … "${end}".`)
  return `${page.slice(0, from + start.length)}\n${table}\n${page.slice(to)}`
}

/** Rows of the object literal ERROR_CODES, in its order. */
function codeTable() {
  const { initializer } = constantNamed('ERROR_CODES')
  const rows = literalOf(initializer).properties.map(
    (row) => `| \`${row.name.text}\` | ${row.initializer.text} |`,
  )
  return ['| code | meaning |', '|---|---|', ...rows].join('\n')
}

function limitTables() {
  const limits = sources.flatMap((source) => topLevelConstants(source).flatMap(limitsOf))
  const byFolder = Map.groupBy
    ? Map.groupBy(limits, folderOf)
    : limits.reduce(
        (map, limit) => map.set(folderOf(limit), [...(map.get(folderOf(limit)) ?? []), limit]),
        new Map(),
      )
  return [...byFolder]
    .map(([folder, members]) => {
      const rows = members.map(
        (limit) => `| \`${nameOf(limit)}\` | ${valueText(limit)} | ${reasonOf(limit)} |`,
      )
      return [`### ${folder}`, '', '| constant | value | reason |', '|---|---|---|', ...rows].join('\n')
    })
    .join('\n\n')
}

function constantNamed(name) {
  return (
    sources.flatMap(topLevelConstants).find((each) => each.name.text === name) ?? fail(`lib has no ${name}.`)
  )
}

function topLevelConstants(source) {
  return source.statements
    .filter(ts.isVariableStatement)
    .flatMap(({ declarationList }) => [...declarationList.declarations])
    .filter(({ name, initializer }) => ts.isIdentifier(name) && initializer !== undefined)
}

/** The constant itself, or the properties of an object of defaults. */
function limitsOf(constant) {
  if (DEFAULTS_NAME.test(constant.name.text)) return [...literalOf(constant.initializer).properties]
  return isLimit(constant) ? [constant] : []
}

function nameOf(limit) {
  if (ts.isVariableDeclaration(limit)) return limit.name.text
  const constant = ts.findAncestor(limit, ts.isVariableDeclaration)
  return `${constant.name.text}.${limit.name.text}`
}

/** A limit stands with its value: what other constants make of it (`MAX_RANK = MAX_AXES`) is not a second limit. */
function isLimit(constant) {
  const { name, initializer } = constant
  const isShared = SHARED_LIMITS.has(pathInLibrary(constant))
  return (isShared || LIMIT_NAME.test(name.text)) && !ts.isIdentifier(initializer)
}

function pathInLibrary(node) {
  return relative(LIBRARY, node.getSourceFile().fileName).replaceAll(sep, '/')
}

/** What concerns one format is one part, in whichever rooms it is. */
function folderOf(limit) {
  const [first, second] = pathInLibrary(limit).split('/')
  return ['formats', 'models'].includes(first) && !second.endsWith('.ts')
    ? second.split('_')[0]
    : first.replace(/\.ts$/, '')
}

function valueText({ initializer }) {
  return initializer
    .getText()
    .replaceAll('|', '\\|')
    .replace(/ as const$/, '')
}

function reasonOf(limit) {
  const comments = ts.getJSDocCommentsAndTags(limit).filter(ts.isJSDoc)
  const text = comments.map(({ comment }) => ts.getTextOfJSDocComment(comment) ?? '').join(' ')
  if (text === '') fail(`${nameOf(limit)} (lib/${pathInLibrary(limit)}) has no doc comment.`)
  return text.replaceAll(/\s+/g, ' ').replaceAll('|', '\\|')
}

function literalOf(node) {
  return ts.isAsExpression(node) || ts.isSatisfiesExpression(node) ? literalOf(node.expression) : node
}
