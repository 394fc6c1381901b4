/**
 * Arithmetic of symbolic dimensions: sums of products of names with integer factors, written as in `2*N + M*K - 1`.
 *
 * Exporters write such texts into models, so they are read as well. Names of any other form take part in no arithmetic.
 */

/** Factors by product: names in order, joined by `*`; the empty text for the constant. */
type Sum = ReadonlyMap<string, number>

/** Longest sum that is followed; real models have two or three terms. */
const MAX_SYMBOL_TERMS = 8

/** Longest text that is read; a name may have any length. */
const MAX_SYMBOL_LENGTH = 256

const NAME = '[A-Za-z_][A-Za-z0-9_.]*'
const TERM = `(?:\\d{1,15}|${NAME})(?:\\*${NAME}){0,8}`
const SUM = new RegExp(`^${TERM}(?: [+-] ${TERM}){0,${MAX_SYMBOL_TERMS - 1}}$`)

function sumOf(dim: number | string): Sum | undefined {
  if (typeof dim === 'number') return new Map(dim === 0 ? [] : [['', dim]])
  if (dim.length > MAX_SYMBOL_LENGTH || !SUM.test(dim)) return undefined
  const sum = new Map<string, number>()
  let sign = 1
  for (const part of dim.split(' ')) {
    if (part === '+' || part === '-') {
      sign = part === '+' ? 1 : -1
      continue
    }
    const [first, ...others] = part.split('*') as [string, ...string[]]
    const factor = /^\d/.test(first) ? Number(first) : 1
    const names = /^\d/.test(first) ? others : [first, ...others]
    addTerm(sum, names.sort().join('*'), sign * factor)
  }
  return sum
}

function addTerm(sum: Map<string, number>, product: string, factor: number): void {
  const total = (sum.get(product) ?? 0) + factor
  if (total === 0) sum.delete(product)
  else sum.set(product, total)
}

/** Null for what cannot be written: too many terms, factors beyond 2^53 - 1, and sums without a positive term. */
function dimOf(sum: Sum): number | string | null {
  if (sum.size === 0) return 0
  if (sum.size > MAX_SYMBOL_TERMS || ![...sum.values()].every(Number.isSafeInteger)) return null
  if (sum.size === 1 && sum.has('')) return sum.get('')!
  const terms = [...sum].sort(([one, left], [other, right]) => {
    if (left > 0 !== right > 0) return left > 0 ? -1 : 1
    if ((one === '') !== (other === '')) return one === '' ? 1 : -1
    return one < other ? -1 : 1
  })
  if (terms[0]![1] < 0) return null
  const text = terms.map(([product, factor], at) => {
    const size = Math.abs(factor)
    const term = product === '' ? `${size}` : size === 1 ? product : `${size}*${product}`
    return at === 0 ? term : `${factor < 0 ? '-' : '+'} ${term}`
  })
  return text.join(' ')
}

export function addSymbols(
  one: number | string,
  other: number | string,
  sign: 1 | -1,
): number | string | null {
  const [left, right] = [sumOf(one), sumOf(other)]
  if (!left || !right) return null
  const sum = new Map(left)
  for (const [product, factor] of right) addTerm(sum, product, sign * factor)
  return dimOf(sum)
}

export function multiplySymbols(one: number | string, other: number | string): number | string | null {
  const [left, right] = [sumOf(one), sumOf(other)]
  if (!left || !right) return null
  const sum = new Map<string, number>()
  for (const [product, factor] of left) {
    for (const [second, times] of right)
      addTerm(sum, [...namesOf(product), ...namesOf(second)].sort().join('*'), factor * times)
  }
  return dimOf(sum)
}

/** Null unless the quotient has no remainder for any extents of the names, which are not 0. */
export function divideSymbols(one: number | string, other: number | string): number | string | null {
  if (one === other) return 1
  const [left, right] = [sumOf(one), sumOf(other)]
  if (!left || right?.size !== 1) return null
  const [[divisor, by]] = [...right] as [[string, number]]
  const sum = new Map<string, number>()
  for (const [product, factor] of left) {
    const names = namesOf(product)
    for (const name of namesOf(divisor)) {
      const at = names.indexOf(name)
      if (at < 0) return null
      names.splice(at, 1)
    }
    if (factor % by !== 0) return null
    sum.set(names.join('*'), factor / by)
  }
  return dimOf(sum)
}

const namesOf = (product: string): string[] => (product === '' ? [] : product.split('*'))
