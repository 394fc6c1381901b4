/** XML that is read or refused, and where its values are. */
import { describe, expect, it } from 'vitest'
import { XmlCursor } from '../../../lib/formats/openvino/xml.js'

/** Events of a text: names, attributes as text, and texts. */
function eventsOf(xml: string | Uint8Array, depth = 64): unknown[] {
  const cursor = new XmlCursor(typeof xml === 'string' ? Buffer.from(xml) : xml, depth)
  const events: unknown[] = []
  for (let event = cursor.next(); event !== 'end'; event = cursor.next()) {
    if (event === 'text') events.push(cursor.text())
    else if (event === 'close') events.push(`/${cursor.name}`)
    else events.push([cursor.name, ...cursor.attributes.map(({ name, text }) => `${name}=${text}`)])
  }
  return events
}

describe('what is read', () => {
  it.each<[string, string, unknown[]]>([
    [
      'a declaration and a byte order mark',
      '\ufeff<?xml version="1.0" encoding="utf-8"?><a/>',
      [['a'], '/a'],
    ],
    ['single quotes, ">" and spaces', '<a  b = \'>"\' c="\'"\n/>', [['a', 'b=>"', `c='`], '/a']],
    [
      'the five entities and numbers',
      '<a b="&lt;&gt;&amp;&quot;&apos;&#65;&#x2603;"/>',
      [['a', `b=<>&"'A☃`], '/a'],
    ],
    ['an entity that is written as text', '<a b="&amp;lt;"/>', [['a', 'b=&lt;'], '/a']],
    ['line ends and tabs in a value', '<a b="1\r\n2\t3"/>', [['a', 'b=1 2 3'], '/a']],
    ['a line end as a number', '<a b="1&#10;2"/>', [['a', 'b=1\n2'], '/a']],
    ['comments and instructions', '<!-- - <x> --><?p ?><a><!----></a><!-- e -->', [['a'], '/a']],
    ['character data', '<a>1<![CDATA[<&]]]]>&gt;</a>', [['a'], '1', '<&]]', '>', '/a']],
    ['other characters than ASCII', '<ü ☃="é"></ü>', [['ü', '☃=é'], '/ü']],
  ])('%s', (_, xml, wanted) => {
    expect(eventsOf(xml)).toEqual(wanted)
  })

  it('gives byte ranges, also after characters of several bytes', () => {
    const bytes = Buffer.from(`<a b="☃ü" c='d&amp;'/>`)
    const cursor = new XmlCursor(bytes, 64)
    cursor.next()
    const raw = cursor.attributes.map(({ start, end }) => bytes.toString('utf8', start, end))
    expect(raw).toEqual(['☃ü', 'd&amp;'])
  })
})

describe('what is refused', () => {
  it.each<[string, string, string, number]>([
    ['a document type', '<!DOCTYPE a><a/>', 'ERR_UNSUPPORTED', 0],
    ['a document type in lower case', '<a/><!doctype a>', 'ERR_UNSUPPORTED', 4],
    ['an undefined entity', '<a b="1&nbsp;"/>', 'ERR_HEADER', 7],
    ['an entity without an end', '<a b="&amp"/>', 'ERR_HEADER', 6],
    ['the character 0', '<a b="&#0;"/>', 'ERR_HEADER', 6],
    ['a surrogate', '<a>&#xD800;</a>', 'ERR_HEADER', 3],
    ['a number above all characters', '<a>&#x110000;</a>', 'ERR_HEADER', 3],
    ['an attribute twice', '<a b="1" b="2"/>', 'ERR_DUPLICATE', 9],
    ['a value without quotes', '<a b=1/>', 'ERR_HEADER', 5],
    ['no value', '<a b/>', 'ERR_HEADER', 5],
    ['no space between attributes', '<a b="1"c="2"/>', 'ERR_HEADER', 8],
    ['"<" in a value', '<a b="<"/>', 'ERR_HEADER', 6],
    ['another end', '<a><b></a></b>', 'ERR_HEADER', 6],
    ['an end alone', '</a>', 'ERR_HEADER', 0],
    ['two roots', '<a/><b/>', 'ERR_HEADER', 4],
    ['text outside', '<a/>b', 'ERR_HEADER', 4],
    ['character data outside', '<![CDATA[]]><a/>', 'ERR_HEADER', 0],
    ['"--" in a comment', '<!-- a -- b --><a/>', 'ERR_HEADER', 7],
    ['"]]>" in text', '<a>]]></a>', 'ERR_HEADER', 3],
    ['a declaration later', '<a><?xml version="1.0"?></a>', 'ERR_HEADER', 3],
    ['a control character', '<a>\u0001</a>', 'ERR_HEADER', 3],
    ['a noncharacter', '<a>\uffff</a>', 'ERR_HEADER', 3],
    ['Latin-1', '<?xml version="1.0" encoding="ISO-8859-1"?><a/>', 'ERR_UNSUPPORTED', 0],
    ['no element', '<!-- -->', 'ERR_TRUNCATED', 8],
    ['an open element', '<a><b/>', 'ERR_TRUNCATED', 7],
    ['a cut tag', '<a b="1"', 'ERR_TRUNCATED', 8],
    ['a cut value', '<a b="1', 'ERR_TRUNCATED', 6],
    ['a cut comment', '<a><!-- ', 'ERR_TRUNCATED', 7],
  ])('%s', (_, xml, code, offset) => {
    expect(() => eventsOf(xml)).toThrow(expect.objectContaining({ code, offset }))
  })

  it('bytes that are not UTF-8, and UTF-16', () => {
    expect(() => eventsOf(Uint8Array.of(0x3c, 0x61, 0xff, 0x2f, 0x3e))).toThrow(/not UTF-8/)
    const claims = Buffer.from('<?xml version="1.0" encoding="UTF-8"?><a b="é"/>', 'latin1')
    expect(() => eventsOf(claims)).toThrow(/not UTF-8/)
    for (const mark of ['\ufeff', ''])
      expect(() => eventsOf(Buffer.from(`${mark}<a/>`, 'utf16le'))).toThrow(/UTF-16/)
  })

  it('elements that are nested deeper than the limit', () => {
    const nested = (depth: number) => '<a>'.repeat(depth) + '</a>'.repeat(depth)
    expect(eventsOf(nested(64)).length).toBe(128)
    expect(() => eventsOf(nested(65))).toThrow(expect.objectContaining({ code: 'ERR_LIMIT', offset: 64 * 3 }))
    expect(() => eventsOf('<a>'.repeat(1_000_000))).toThrow(expect.objectContaining({ code: 'ERR_LIMIT' }))
  })

  it('more attributes than the limit', () => {
    const attributes = (count: number) =>
      `<a${Array.from({ length: count }, (_, index) => ` b${index}=""`).join('')}/>`
    expect(eventsOf(attributes(256)).length).toBe(2)
    expect(() => eventsOf(attributes(257))).toThrow(expect.objectContaining({ code: 'ERR_LIMIT' }))
  })
})
