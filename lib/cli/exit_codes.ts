/** Exit codes of the command. The numbers above 63 are those of BSD's `sysexits.h`, which scripts already know. */
export const EXIT = {
  ok: 0,
  /** `check` found an error, `diff` a difference, or `convert` tensors that it cannot read. */
  findings: 1,
  /** The input is not readable as any known format. */
  unreadable: 2,
  /** Wrong usage: options, names, shapes, or a request that the target format cannot represent. */
  usage: 64,
  /** A fault of tilework itself, or of how it was installed. */
  fault: 70,
  /** The operating system refused, or a file changed while it was read. */
  io: 74,
  /** Interrupted: 128 + SIGINT. */
  cancelled: 130,
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** The more severe of two exit codes, which is the larger number. */
export function worse(a: ExitCode, b: ExitCode): ExitCode {
  return a > b ? a : b
}
