/** Evaluates performance goals: the worst case of each, and all cases that missed it. */

/** Cases with their ratios, smallest first; cases without a ratio are omitted. */
export function rated(cases, ratioOf) {
  return cases
    .map((each) => ({ each, ratio: ratioOf(each) }))
    .filter(({ ratio }) => Number.isFinite(ratio))
    .sort((a, b) => a.ratio - b.ratio)
}

/**
 * The table entry of a goal; none where nothing was measured.
 * @param {string} name - name of the class of cases
 * @param {{ against: string, at: readonly string[], pass?: number, goal?: number, limitedBy?: string }} line
 * @param {number} threads
 * @param {readonly { each: object, ratio: number }[]} cases - result of `rated`
 * @param {(each: object) => string} nameOf
 */
export function worstOf(name, line, threads, cases, nameOf) {
  const [worst] = cases
  if (!worst) return []
  const below = (limit) => (limit === undefined ? 0 : cases.filter(({ ratio }) => ratio < limit).length)
  return [
    {
      name,
      against: line.against,
      at: line.at,
      threads,
      pass: line.pass,
      goal: line.goal,
      limitedBy: line.limitedBy,
      worst: worst.ratio,
      worstCase: nameOf(worst.each),
      cases: cases.length,
      belowPass: below(line.pass),
      belowGoal: below(line.goal),
      missed: cases.filter(({ ratio }) => ratio < Math.max(line.pass ?? 0, line.goal ?? 0)),
    },
  ]
}
