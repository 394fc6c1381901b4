/**
 * Writes the public types of each entry to `etc/api`: `npm run api`. A change of the public surface so shows in the diff
 * of a change. `--check` writes nothing and fails where a report differs, or where CHANGELOG.md has another mark than the
 * reports: the mark forces a line in the changelog with each change of public types. docs/versioning.md explains it.
 *
 * A report lists what an entry exports, then what those declarations refer to and no entry exports, both by name, from
 * the declaration files that TypeScript emits for `lib`, without comments and private members.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import ts from 'typescript'
import { ENTRIES, IMPORTS } from './entries.mjs'
import { fail, ROOT } from './toolchain.mjs'

const FOLDER = join(ROOT, 'etc', 'api')
const LIB = join(ROOT, 'lib')
const MARK = /<!-- public types: ([0-9a-f]{12}) -->/

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const faults = process.argv.includes('--check') ? checkReports() : writeReports()
  if (faults.length > 0) fail(faults.join('\n'))
}

/** Sentences that say what differs, with advice; empty when nothing does. */
export function checkReports(reports = makeReports(), changelog = read('CHANGELOG.md')) {
  const faults = []
  for (const [name, text] of Object.entries(reports)) {
    if (text !== read(join('etc', 'api', `${name}.api.md`))) {
      faults.push(
        `The public types of "${IMPORTS[name]}" differ from etc/api/${name}.api.md: run "npm run api".`,
      )
    }
  }
  const [expected, found] = [markOf(reports), MARK.exec(changelog)?.[1]]
  if (found !== expected) {
    faults.push(
      `CHANGELOG.md has the mark ${found ?? '(none)'} for the public types, which are ${expected}: ` +
        `describe the change in its first section and set "<!-- public types: ${expected} -->".`,
    )
  }
  return faults
}

function writeReports() {
  const reports = makeReports()
  mkdirSync(FOLDER, { recursive: true })
  for (const [name, text] of Object.entries(reports)) writeFileSync(join(FOLDER, `${name}.api.md`), text)
  const [fault] = checkReports(reports)
  console.log(fault ?? `public types: etc/api, ${markOf(reports)}`)
  return []
}

/** The first digits of a hash over all reports. */
function markOf(reports) {
  const texts = Object.keys(reports)
    .sort()
    .map((name) => reports[name])
  return createHash('sha256').update(texts.join('')).digest('hex').slice(0, 12)
}

/** @returns {Record<string, string>} the text of each report by the name of its entry */
export function makeReports() {
  const program = declarationProgram()
  const checker = program.getTypeChecker()
  const exportsOf = (name) => {
    const file = program.getSourceFile(join(LIB, `${name}.d.ts`))
    return checker
      .getExportsOfModule(checker.getSymbolAtLocation(file))
      .map((symbol) => resolved(symbol, checker))
  }
  const exported = Object.fromEntries(ENTRIES.map((name) => [name, exportsOf(name)]))
  const allPublic = new Set(Object.values(exported).flat())
  const reports = Object.entries(exported).map(([name, symbols]) => {
    const hidden = new Set(
      symbols.flatMap((symbol) => [...referred(symbol, checker)]).filter((one) => !allPublic.has(one)),
    )
    return [name, reportOf(name, symbols, [...hidden])]
  })
  return Object.fromEntries(reports)
}

/** A program of the declarations that TypeScript emits for `lib`, kept in memory. */
function declarationProgram() {
  const { options, fileNames } = ts.parseJsonConfigFileContent(
    ts.readConfigFile(join(ROOT, 'tsconfig.json'), ts.sys.readFile).config,
    ts.sys,
    ROOT,
  )
  const emitted = new Map()
  const emitOptions = {
    ...options,
    declaration: true,
    emitDeclarationOnly: true,
    outDir: LIB,
    removeComments: false,
  }
  const source = ts.createProgram(fileNames, emitOptions)
  source.emit(undefined, (path, text) => emitted.set(path, text))
  const host = ts.createCompilerHost(options)
  const { fileExists, readFile, getSourceFile } = host
  const isSource = (path) => path.startsWith(LIB) && !path.endsWith('.d.ts')
  host.fileExists = (path) => emitted.has(path) || (!isSource(path) && fileExists(path))
  host.readFile = (path) => emitted.get(path) ?? readFile(path)
  host.getSourceFile = (path, ...rest) =>
    emitted.has(path)
      ? ts.createSourceFile(path, emitted.get(path), ts.ScriptTarget.Latest, true)
      : getSourceFile.call(host, path, ...rest)
  const entries = ENTRIES.map((name) => join(LIB, `${name}.d.ts`))
  return ts.createProgram(entries, { ...options, noEmit: true }, host)
}

function reportOf(name, exported, hidden) {
  return `# Public types of \`${IMPORTS[name]}\`

Written by \`npm run api\`; do not edit.

\`\`\`ts
${printed(exported)}
\`\`\`

Types that these refer to and no entry exports:

\`\`\`ts
${printed(hidden)}
\`\`\`
`
}

function resolved(symbol, checker) {
  return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
}

/** Symbols of this library that the declarations of `symbol` refer to. */
function referred(symbol, checker) {
  const found = new Set()
  const visit = (node) => {
    if (isPrivate(node)) return
    if (ts.isIdentifier(node)) {
      const at = checker.getSymbolAtLocation(node)
      const target = at && resolved(at, checker)
      if (target?.declarations?.some(isOwnDeclaration)) found.add(target)
    }
    ts.forEachChild(node, visit)
  }
  for (const declaration of declarationsOf(symbol)) visit(declaration)
  return found
}

/** Whether a declaration is at the top level of a file of `lib`. */
function isOwnDeclaration(node) {
  const statement = ts.isVariableDeclaration(node) ? node.parent.parent : node
  return ts.isSourceFile(statement.parent) && statement.getSourceFile().fileName.startsWith(LIB)
}

function declarationsOf(symbol) {
  return (symbol.declarations ?? []).filter(isOwnDeclaration)
}

function printed(symbols) {
  const printer = ts.createPrinter({ removeComments: true })
  const text = (declaration) => {
    const node = ts.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration
    const [open] = ts.transform(node, [withoutPrivate]).transformed
    const printed = printer.printNode(ts.EmitHint.Unspecified, open, node.getSourceFile())
    // Where a type is declared is no part of it.
    return printed.replace(/\bimport\("\.[^"]*"\)\./g, '')
  }
  const names = symbols.map((symbol) => ({ name: symbol.name, texts: declarationsOf(symbol).map(text) }))
  names.sort((a, b) => (a.name < b.name ? -1 : 1))
  return names.flatMap(({ texts }) => [...new Set(texts)]).join('\n\n')
}

function withoutPrivate(context) {
  const visit = (node) => (isPrivate(node) ? undefined : ts.visitEachChild(node, visit, context))
  return visit
}

function isPrivate(node) {
  if (!ts.isClassElement(node)) return false
  const isInternal = ts.getJSDocTags(node).some((tag) => tag.tagName.text === 'internal')
  const isNamedPrivate = node.name !== undefined && ts.isPrivateIdentifier(node.name)
  return isInternal || isNamedPrivate || Boolean(ts.getCombinedModifierFlags(node) & ts.ModifierFlags.Private)
}

function read(path) {
  try {
    return readFileSync(join(ROOT, path), 'utf8')
  } catch {
    return ''
  }
}
