/** The choices on the layout page: layout, shape, colouring. */

/** The choices, as text that the user has entered. */
export interface LayoutChoice {
  readonly name: string
  readonly other: string
  readonly shape: string
  readonly dtype: string
  readonly lower: string
  readonly upper: string
}

export const COLOURINGS = ['memory', 'index'] as const
export type Colouring = (typeof COLOURINGS)[number]

/** Normalizes a list as users write or paste it, `[2, 19, 3, 4]`, `2 19 3 4` or `2×19×3×4`, to commas as in a URL. */
export function listText(text: string): string {
  const inner = text.trim().replace(/^[[(](.*)[\])]$/, '$1')
  return inner.trim().replace(/\s*[,x×]\s*|\s+/g, ',')
}

/** The choice that a URL contains. */
export function choiceOf(query: URLSearchParams): LayoutChoice {
  const text = (name: string, fallback: string): string => query.get(name) ?? fallback
  return {
    name: text('name', 'b_fs_yx_fsv16'),
    other: text('other', ''),
    shape: text('shape', query.has('name') ? '1' : '2,19,3,4'),
    dtype: text('dtype', 'float32'),
    lower: text('lower', ''),
    upper: text('upper', ''),
  }
}
