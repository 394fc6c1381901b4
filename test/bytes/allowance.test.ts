/** Loans of limited amounts: who waits for whom. */
import { executionAsyncResource } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { Allowance } from '../../lib/bytes/allowance.js'

const soon = (): Promise<void> => sleep(5)

it('what does not fit together waits, first come, first served', async () => {
  const allowance = new Allowance(2)
  const order: string[] = []
  const job = (name: string) => async () => {
    order.push(`${name} starts`)
    await soon()
    order.push(`${name} ends`)
  }
  await Promise.all([
    allowance.lend(1, undefined, job('a')),
    allowance.lend(2, undefined, job('b')),
    allowance.lend(1, undefined, job('c')),
  ])
  expect(order).toEqual(['a starts', 'a ends', 'b starts', 'b ends', 'c starts', 'c ends'])
})

it('a nested borrower does not wait for its parent, also where another allowance lies between', async () => {
  const [one, other] = [new Allowance(1), new Allowance(1)]
  const result = await one.lend(1, undefined, () =>
    other.lend(1, undefined, () => one.lend(1, undefined, async () => 'nested')),
  )
  expect(result).toBe('nested')
})

it('a borrower that was started in a loan that has ended waits as any other', async () => {
  const allowance = new Allowance(1)
  const order: string[] = []
  let later: Promise<void> | undefined
  await allowance.lend(1, undefined, async () => {
    later = sleep(10).then(() => allowance.lend(1, undefined, async () => void order.push('later')))
  })
  await allowance.lend(1, undefined, async () => {
    await sleep(30)
    order.push('first')
  })
  await later
  expect(order).toEqual(['first', 'later'])
})

it('promises do not carry one more value for each allowance that was ever used', async () => {
  const valuesOf = (): number => Object.getOwnPropertySymbols(executionAsyncResource()).length
  const valuesInLoan = (): Promise<number> => new Allowance(1).lend(1, undefined, () => soon().then(valuesOf))
  const inOne = await valuesInLoan()
  for (let at = 0; at < 50; at++) await new Allowance(1).lend(1, undefined, soon)
  expect(await valuesInLoan()).toBe(inOne)
})
