/** Debian's Chromium, driven by playwright-core, and a server with files that a test makes. */
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type Browser, chromium, type Page } from 'playwright-core'
import { type Finding, type OpenFile, open } from '../../../lib/index.js'
import { startViewServer, type ViewServer } from '../../../lib/view/server/server.js'

/** The first start after an installation reads half a GiB; a busy machine takes minutes for it. */
export const START_MS = 300_000

const PATHS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

/** Undefined where there is none: the tests are left out then. */
export const CHROMIUM = process.env.TILEWORK_CHROMIUM ?? PATHS.find((path) => existsSync(path))

export interface ShownFile {
  readonly name: string
  readonly bytes: Uint8Array
  readonly check?: () => Promise<readonly Finding[]>
}

export interface Screen {
  readonly width?: number
  readonly scheme?: 'light' | 'dark'
}

/** A server and a browser; every message of the page and every request beyond the server is a fault. */
export class ViewedPage {
  readonly faults: string[] = []
  readonly #server: ViewServer
  readonly #browser: Browser
  readonly #files: readonly OpenFile[]

  private constructor(server: ViewServer, browser: Browser, files: readonly OpenFile[]) {
    this.#server = server
    this.#browser = browser
    this.#files = files
  }

  static async start(files: readonly ShownFile[]): Promise<ViewedPage> {
    const opened: OpenFile[] = []
    for (const { bytes } of files) opened.push(await open(bytes))
    const viewed = files.map(({ name, check = async () => [] }, at) => ({ name, file: opened[at]!, check }))
    const server = await startViewServer(viewed, 0)
    // Containers have no user namespaces for the sandbox of a browser, which loads nothing but this page.
    const browser = await chromium.launch({
      executablePath: CHROMIUM!,
      args: ['--no-sandbox'],
      timeout: START_MS,
    })
    return new ViewedPage(server, browser, opened)
  }

  async close(): Promise<void> {
    await this.#browser.close()
    await this.#server.close()
    for (const file of this.#files) file.close()
  }

  /** Tabs that stay open would share the processor with the next test. */
  async closeTabs(): Promise<void> {
    for (const context of this.#browser.contexts()) await context.close()
  }

  /** A new tab with a view, once it has stopped loading. */
  async show(hash: string, { width = 1280, scheme = 'light' }: Screen = {}): Promise<Page> {
    const page = await this.#browser.newPage({
      viewport: { width, height: 900 },
      colorScheme: scheme,
    })
    // The limit of a test ends what hangs.
    page.setDefaultTimeout(0)
    page.on('console', (message) => {
      if (message.type() !== 'log') this.faults.push(`${hash}: ${message.text()}`)
    })
    page.on('pageerror', ({ message }) => this.faults.push(`${hash}: ${message}`))
    page.on('request', (request) => {
      const url = request.url()
      if (!url.startsWith(this.#server.url) && !url.startsWith('data:'))
        this.faults.push(`${hash}: asked for ${url}`)
    })
    await page.goto(this.#server.url + hash)
    await settled(page)
    return page
  }
}

/** Waits until the effects of what was done have run and nothing is being read. */
export async function settled(page: Page): Promise<void> {
  await page.evaluate(async () => {
    const frames = async (count: number): Promise<void> => {
      for (let frame = 0; frame < count; frame++)
        await new Promise((resolve) => requestAnimationFrame(resolve))
    }
    // What was read may ask for more.
    for (let quiet = 0; quiet < 3; quiet++) {
      await frames(2)
      if (document.body.getAttribute('aria-busy') !== 'false') quiet = -1
    }
  })
}

/** Keeps a picture of the page in the folder that TILEWORK_SCREENSHOTS names. */
export async function keepScreenshot(page: Page, name: string): Promise<void> {
  const folder = process.env.TILEWORK_SCREENSHOTS
  if (folder === undefined) return
  mkdirSync(folder, { recursive: true })
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true })
}
