/** Why a node has no counterpart in a tmfile. Collected, so that a caller learns of all of them at once. */

/** Thrown by the row of an operator, and caught by the conversion. */
export class Refusal extends Error {}

export function refuse(reason: string): never {
  throw new Refusal(reason)
}
