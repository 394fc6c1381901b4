/** Ends the name of a constant in float16; the Convert after it has the name without. */
export const COMPRESSED_SUFFIX = '_compressed'
