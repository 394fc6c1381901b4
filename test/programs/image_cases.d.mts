/** Pixels by formula, height × width × channels. */
export function pixelsOf(input: {
  readonly seed: number
  readonly kind: 'noise' | 'edges' | 'smooth' | string
  readonly height: number
  readonly width: number
  readonly channels: number
}): Uint8Array

/** The answer of a library to a case. */
export function answerOf(
  tilework: object,
  given: object,
): Promise<{ readonly shape: readonly number[]; readonly dtype: string; readonly bytes: Uint8Array }>
