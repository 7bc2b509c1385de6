/**
 * A person's browser, as far as signing in needs one: cookies, redirects, one form. It shares no code with `src/`, and goes wherever
 * it is sent.
 */

export interface Visited {
  readonly status: number
  readonly url: URL
  readonly text: string
  readonly headers: Headers
}

export class Browser {
  /** By origin. */
  readonly #cookies = new Map<string, Map<string, string>>()
  /** Every URL it was at, in order. */
  readonly visited: URL[] = []

  /** Opens a link, continues through the form there and every redirect, and ends on a page. */
  async signIn(link: string): Promise<Visited> {
    const page = await this.open(link)
    return page.status === 200 ? this.submit(page) : page
  }

  /** Follows redirects to a page. */
  async open(link: string | URL): Promise<Visited> {
    return this.#follow(await this.#request(new URL(link)))
  }

  /** Presses the one button of a page. */
  async submit({ url, text }: Visited): Promise<Visited> {
    const action = /<form method="post" action="([^"]*)"/.exec(text)?.[1]
    if (action === undefined) throw new Error(`no form at ${url.href}: ${text}`)
    const fields = [...text.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)].map(
      ([, name, value]): [string, string] => [name!, value!],
    )
    return this.#follow(await this.#request(new URL(action, url), new URLSearchParams(fields)))
  }

  /** One answer, without following it. */
  async step(link: string | URL, form?: URLSearchParams): Promise<Visited> {
    return this.#request(new URL(link), form)
  }

  async #follow(first: Visited): Promise<Visited> {
    let page = first
    for (let redirects = 0; redirects < 10; redirects++) {
      const location = page.headers.get('location')
      if (page.status < 300 || page.status >= 400 || location === null) return page
      page = await this.#request(new URL(location, page.url))
    }
    throw new Error(`too many redirects at ${page.url.href}`)
  }

  async #request(url: URL, form?: URLSearchParams): Promise<Visited> {
    this.visited.push(url)
    const jar = this.#cookies.get(url.origin) ?? new Map<string, string>()
    this.#cookies.set(url.origin, jar)
    const response = await fetch(url, {
      redirect: 'manual',
      method: form === undefined ? 'GET' : 'POST',
      headers: {
        cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; '),
        ...(form !== undefined && { origin: url.origin }),
      },
      ...(form !== undefined && { body: form }),
    })
    for (const cookie of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie) ?? []
      if (name !== undefined) jar.set(name, value!)
    }
    return { status: response.status, url, text: await response.text(), headers: response.headers }
  }
}
