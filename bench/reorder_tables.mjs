/** Formats the results of `npm run bench -- reorder`: cases and goals, as console tables and in Markdown. */
import { caseName } from './reorder_cases.mjs'

/** One row of the console's table. */
export function caseRow(result) {
  const { threads, bytes, level, kernel, class: nest, equal, tilework, memcpy, streaming } = result
  return {
    case: caseName(result),
    threads,
    MiB: rounded(bytes / 2 ** 20),
    level,
    class: nest,
    kernel,
    'GB/s': rounded(tilework),
    '/ M': rounded(tilework / memcpy),
    '/ S': rounded(tilework / streaming),
    M: rounded(memcpy),
    S: rounded(streaming),
    ...(result.reference && { '/ reference': rounded(tilework / result.reference) }),
    ...(result.onednn && {
      '/ oneDNN': rounded(tilework / result.onednn),
      'its kernel': result.onednnKernel,
    }),
    ...(result.inNode && nodeCells(result.inNode)),
    ...(!equal && { wrong: true }),
    ...(result.onednnEqual === false && { 'oneDNN differs': true }),
  }
}

function nodeCells({ tilework, onnxruntime, copy, equal }) {
  return {
    'from Node, GB/s': rounded(tilework),
    'its / copy': rounded(tilework / copy),
    'its / onnxruntime': rounded(tilework / onnxruntime),
    ...(!equal && { 'onnxruntime differs': true }),
  }
}

/** One row of the console's table of goals. */
export function goalRow(entry) {
  return {
    class: entry.name,
    against: entry.against,
    in: entry.at.join(' '),
    threads: entry.threads,
    cases: entry.cases,
    pass: entry.pass ?? '',
    goal: entry.goal ?? '',
    worst: rounded(entry.worst),
    'worst case': entry.worstCase,
    held: verdict(entry),
  }
}

/** Rows of the console's table of cases that missed a goal, worst first. */
export function missedRows({ name, against, threads, pass, goal, missed }, nameOf = caseName) {
  return missed.map(({ each, ratio: value }) => ({
    case: nameOf(each),
    threads,
    level: each.level,
    kernel: each.kernel,
    class: name,
    against,
    pass: pass ?? '',
    goal: goal ?? '',
    ratio: rounded(value),
    held: value < (pass ?? 0) ? '' : 'pass',
  }))
}

function verdict({ belowPass, belowGoal, goal }) {
  if (belowPass > 0) return `${belowPass} below pass`
  if (goal === undefined) return 'pass'
  return belowGoal > 0 ? `${belowGoal} below goal` : 'goal'
}

/** A Markdown table of the goals: one row per goal, with all thread counts in one cell. */
export function goalsMarkdown(entries) {
  const lines = grouped(entries, ({ name, against, at, pass, goal }) =>
    [name, against, at.join(' '), pass, goal].join('|'),
  )
  const titles = ['class', 'ratio to', 'in', 'pass', 'goal', 'reached', 'worst case', 'held', 'limited by']
  return markdown(titles, [...lines.values()].map(goalCells))
}

function goalCells(entries) {
  const [{ name, against, at, pass, goal, limitedBy }] = entries
  const distinct = (textOf, separator) => [...new Set(entries.map(textOf))].join(separator)
  return [
    name,
    against,
    at.length === 3 ? 'all' : at.join(', '),
    pass ?? '–',
    goal ?? '–',
    entries.map(({ worst }) => ratio(worst)).join(' / '),
    distinct(({ worstCase }) => `\`${worstCase}\``, ', '),
    distinct(verdict, ' / '),
    entries.some(({ missed }) => missed.length > 0) ? (limitedBy ?? '') : '',
  ]
}

/** A Markdown table of cases: one row per pair and type, one column per shape; ratios to memcpy (and to oneDNN). */
export function casesMarkdown(results) {
  const tables = grouped(results, ({ group }) => group)
  return [...tables].map(([group, members]) => `### ${group}\n\n${groupMarkdown(members)}`).join('\n\n')
}

function groupMarkdown(results) {
  const labels = [...new Set(results.map(({ label }) => label))]
  const pairs = grouped(results, ({ from, to, dtype }) => `${from}>${to} ${dtype}`)
  const rows = [...pairs].map(([pair, members]) => [
    `\`${pair}\``,
    ...labels.map((label) => cell(members.filter((each) => each.label === label))),
  ])
  return markdown(['case', ...labels], rows)
}

function cell(results) {
  if (results.length === 0) return ''
  const toCopy = results.map(({ tilework, memcpy }) => ratio(tilework / memcpy)).join(' / ')
  const toPeer = results.flatMap(({ tilework, onednn }) => (onednn ? [ratio(tilework / onednn)] : []))
  return toPeer.length > 0 ? `${toCopy} (${toPeer.join(' / ')})` : toCopy
}

export function markdown(titles, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`
  return [line(titles), `|${titles.map(() => '---|').join('')}`, ...rows.map(line)].join('\n')
}

export function ratio(value) {
  return value >= 20 ? value.toFixed(0) : value.toFixed(value >= 3 ? 1 : 2)
}

/** Groups members by key, in the order in which keys first occur. */
export function grouped(members, keyOf) {
  const groups = new Map()
  for (const member of members) {
    const key = keyOf(member)
    groups.set(key, [...(groups.get(key) ?? []), member])
  }
  return groups
}

export function rounded(value) {
  return Math.round(value * 100) / 100
}
