/** esbuild collects imported style sheets in page.css. */
declare module '*.css'
