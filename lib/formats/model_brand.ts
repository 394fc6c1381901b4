/** Names a model's format on its class, so that a model is recognised without loading any format. */
export const MODEL_FORMAT: unique symbol = Symbol('tilework.modelFormat')

/** The format name on the class of `content`; undefined for what is not a model. */
export function modelFormatOf(content: unknown): string | undefined {
  if (typeof content !== 'object' || content === null || isRevoked(content)) return undefined
  // Asked of the prototype: a caller's proxy may throw at every access to a property of its own.
  return (Object.getPrototypeOf(content) as { readonly [MODEL_FORMAT]?: string } | null)?.[MODEL_FORMAT]
}

/** Every question about a revoked Proxy throws. */
function isRevoked(content: object): boolean {
  try {
    Object.getPrototypeOf(content)
    return false
  } catch {
    return true
  }
}
