/** Translates advice of the library, which names its options, to the flags of the command line. */

const FLAGS_FOR_ADVICE: readonly (readonly [advice: RegExp, flags: string])[] = [
  [/symlinks: 'follow' allows it\.$/, '--symlinks follow allows it.'],
  [/maxOutputBytes allows/, '--max-output allows'],
  [/hardLinks: 'allow' allows it\.$/, '--hard-links allow allows it.'],
  [/; the option remote: \{ redirects: '(\w+)' \} allows that\.$/, '; --redirects $1 allows that.'],
  [/ with the option tensors\.$/, " with --tensor NAME or --tensor '#INDEX'."],
  [/; set base to a folder above both to keep their paths\.$/, '; --base DIR keeps their paths below DIR.'],
  [/ with the option nul\.$/, ' with --null.'],
  [
    / compress it: toFloat16 and the quantizers of tilework\/onnx\./,
    ' use tilework compress MODEL --to fp16, or int8, q4 and others.',
  ],
  [/ by the option weightsOnly, or select/, ' with --weights-only, or select'],
  [/; set the option format to one of: /, '; set --format to one of: '],
  [/; set it with setType\.$/, '; --set-type NAME=DTYPE:N,N,… declares it.'],
  [
    / is not a regular file and cannot be read by ranges\.$/,
    ' is not a regular file and cannot be read by ranges; inspect and check take a pipe as -.',
  ],
  [/; set the option count\.$/, '; use --shard auto/N.'],
  [
    /; convertOpset makes it so, and the format matmulnbits needs none\.$/,
    '; edit --opset 21 makes it so, and --to q4 needs none.',
  ],
  [/For another name set the option format\.$/, 'For another name set --format.'],
]

/** `message` with the flag in place of the option. */
export function optionAdvice(message: string): string {
  if (message.startsWith('The file has no tensor ')) return withSelectors(message)
  return FLAGS_FOR_ADVICE.reduce((text, [advice, flags]) => text.replace(advice, flags), message)
}

/** Names in the form of `--tensor`: a name that starts with `#` or `name:` gets the prefix `name:`. */
function withSelectors(message: string): string {
  return message
    .replace(/"(#|name:)/g, '"name:$1')
    .replace(/ at index (-?\d+)/, " '#$1'")
    .replace(/\(indices 0 to (\d+)\)\.$/, "('#0' to '#$1').")
}
