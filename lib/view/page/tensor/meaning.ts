/** What the elements of a quantized tensor are shown as. */
export const MEANINGS = ['codes', 'real'] as const
export type Meaning = (typeof MEANINGS)[number]
