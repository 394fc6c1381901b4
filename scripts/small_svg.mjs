/**
 * A drawing of vega without what an `<img>` does not show: roles and labels of its parts, backgrounds without a size, values that are the
 * defaults, and groups that say nothing. That is most of its bytes, which the package ships. Positions keep a tenth of a pixel.
 */
export function smallSvg(text) {
  const drawing = text
    .replace(/ (?:aria-[a-z]+|role|pointer-events|class)="[^"]*"/g, '')
    .replace(/<path(?: display="none")? d="(?:|M0,0h0v0h0Z)"(?: display="none")?\/>/g, '')
    .replace(/(\d\.\d)\d+/g, '$1')
    .replace(/ (?:opacity="1"|stroke-width="1"|[xy][12]="0"|transform="translate\(0,0\)")/g, '')
  return withoutPlainGroups(drawing)
}

function withoutPlainGroups(text) {
  const arePlain = []
  return text.replace(/<g>|<g [^>]*>|<\/g>/g, (tag) => {
    if (tag !== '</g>') arePlain.push(tag === '<g>')
    const isPlain = tag === '</g>' ? arePlain.pop() : arePlain.at(-1)
    return isPlain ? '' : tag
  })
}
