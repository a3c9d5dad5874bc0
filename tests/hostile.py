"""Text that tries to run in a page, to hide, to end what it stands in and to give a terminal orders."""

SCRIPT = "<script>document.title = 'owned'; console.error('owned')</script>"
HOSTILE = (
    f'{SCRIPT} "><img src=x onerror="document.title=\'owned\'"> </mark></pre></details> '
    "\x1b[31mred\x1b[0m \u202eolleh\u202c\u200f {{ 7*7 }} <!-- --> &lt;b&gt;"
)
