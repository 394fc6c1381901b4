/**
 * Which mutants are never drawn. Each rule has a name and a reason: the change cannot make a result wrong, or this machine
 * cannot run it. Rules are about files, about lines, and about the changed part of a line.
 */
import { readFileSync } from 'node:fs'

const FILE_RULES = [
  {
    // Thresholds and costs choose between ways that are all right; benchmarks test them.
    name: 'policy',
    matches: /\/(?:cache_sets|stores|tile_costs|policy|thresholds)\.(?:cc|def|h)$/,
  },
  // Not compiled on this system.
  { name: 'another system', matches: /_windows\.(?:cc|h)$/ },
  // Not compiled for this processor.
  {
    name: 'another processor',
    matches: process.arch === 'arm64' ? /_avx(?:2|512)\.(?:cc|h)$/ : /_neon\.(?:cc|h)$/,
  },
  // Compiled, but never chosen: every mutant would survive.
  { name: 'instructions that this processor lacks', matches: hasAvx512() ? /^$/ : /_avx512\.(?:cc|h)$/ },
]

/** Rules about code of one or several lines. `to` says where it ends: with the statement, or with the block it opens. */
const REGION_RULES = [
  // Must hold whenever the file compiles.
  { name: 'static_assert', starts: /^\s*static_assert\b/, to: 'statement' },
  // A prefetch changes no result.
  { name: 'prefetch', starts: /\bLinePrefetcher<\w+> \w+\([^{]*$/, to: 'statement' },
  { name: 'prefetch', starts: /\bclass LinePrefetcher\b|\bLinePrefetcher<\w+> \w+\(.*\{$/, to: 'block' },
  { name: 'prefetch', starts: /\bvoid \w*fetch\w*\(/, to: 'block' },
  // Texts for people: explanations, names of kernels and leaves.
  {
    name: 'text',
    starts: /^\s*(?:(?:constexpr|inline|static) )*(?:std::string|const char\*) [\w:]+\(/,
    to: 'block',
  },
]

const LINE_RULES = [
  { name: 'blank or comment', matches: /^\s*$/ },
  // The end of a function, class or namespace: nothing there that compiles and is another program.
  { name: 'end', matches: /^\}|^namespace\b/ },
  // Includes, conditions of other compilers, unrolling.
  { name: 'preprocessor', matches: /^\s*#/ },
  { name: 'prefetch', matches: /fetch/i },
  // Reserved memory changes no result.
  { name: 'capacity', matches: /^\s*[\w.>-]+(?:\.|->)(?:reserve|shrink_to_fit)\(.*;$|\.capacity\(\)/ },
]

const CHANGE_RULES = [
  { name: 'comment', applies: ({ code, start }) => start >= code.length },
  // Error texts: from the first sentence or number in words on, nothing but text follows.
  { name: 'text', applies: ({ code, start }) => start >= startOfText(code) },
  { name: 'string', applies: ({ code, mutated }) => withoutStrings(code) === withoutStrings(mutated) },
  // Another digit in a name, such as int64_t, is another name.
  {
    name: 'name',
    applies: ({ code, start }) =>
      /\b[A-Za-z_]\w*$/.test(code.slice(0, start)) && /^\d/.test(code.slice(start)),
  },
  // Attributes are about speed and warnings.
  { name: 'attribute', applies: isInAttribute },
]

/** The name of the rule that excludes a file; undefined if mutants of it can be drawn. */
export function excludedFile(path) {
  return FILE_RULES.find(({ matches }) => matches.test(path))?.name
}

/**
 * The name of the rule that excludes a line, for each line of a file.
 *
 * @param {readonly string[]} lines
 * @returns {(string | undefined)[]}
 */
export function excludedLines(lines) {
  const code = lines.map(withoutComment)
  const rules = code.map((line) => LINE_RULES.find(({ matches }) => matches.test(line))?.name)
  for (const [index, line] of code.entries()) {
    if (/^\s*#.*\\$/.test(line)) rules.fill('preprocessor', index, endOfMacro(code, index) + 1)
    const rule = REGION_RULES.find(({ starts }) => starts.test(line))
    if (rule) rules.fill(rule.name, index, endOfRegion(code, index, rule.to) + 1)
  }
  return rules
}

/**
 * The name of the rule that excludes a change of a line; undefined if it can be drawn.
 *
 * @param {string} original - the line
 * @param {string} mutated - one line or two
 */
export function excludedChange(original, mutated) {
  // A statement behind the line, such as `break;`.
  if (mutated.startsWith(`${original}\n`)) return undefined
  const code = withoutComment(original)
  const start = sharedLength(original, mutated)
  const shared = sharedLength(reversed(original.slice(start)), reversed(mutated.slice(start)))
  const change = { code, mutated: withoutComment(mutated), start, end: original.length - shared }
  return CHANGE_RULES.find(({ applies }) => applies(change))?.name
}

/** A line without the comment at its end and the spaces before it. */
export function withoutComment(line) {
  const quoted = /"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\/\/.*/g
  for (const { 0: text, index } of line.matchAll(quoted)) {
    if (text.startsWith('//')) return line.slice(0, index).trimEnd()
  }
  return line
}

function endOfMacro(code, first) {
  const last = code.findIndex((line, index) => index >= first && !line.endsWith('\\'))
  return last < 0 ? code.length - 1 : last
}

/** The last line of a statement or of a block; clang-format indents the end of a block as its start. */
function endOfRegion(code, first, to) {
  const [indent] = /^\s*/.exec(code[first])
  for (let index = first; index < code.length; index++) {
    const line = code[index]
    const isDeclaration = line.endsWith(';') && !line.startsWith(`${indent} `)
    if (to === 'statement' ? line.endsWith(';') : isDeclaration && index === first) return index
    if (index === first ? /\{.*\}$/.test(line) : line.startsWith(`${indent}}`)) return index
  }
  return code.length - 1
}

/** Offset of the first string of several words, or number turned into text; beyond the line if it has none. */
function startOfText(code) {
  const found = /"[^"]* [^"]*"|std::to_string\(/.exec(code)
  return found ? found.index : Number.POSITIVE_INFINITY
}

function withoutStrings(line) {
  return line.replace(/"(?:\\.|[^"\\])*"/g, '""')
}

function isInAttribute({ code, start, end }) {
  const attributes = /\[\[.*?\]\]|__attribute__\(\(.*?\)\)/g
  return [...code.matchAll(attributes)].some(
    ({ 0: text, index }) => start >= index && end <= index + text.length,
  )
}

function sharedLength(a, b) {
  let length = 0
  while (length < a.length && length < b.length && a[length] === b[length]) length++
  return length
}

function reversed(text) {
  return [...text].reverse().join('')
}

function hasAvx512() {
  try {
    return readFileSync('/proc/cpuinfo', 'utf8').includes('avx512_bf16')
  } catch {
    return false
  }
}
