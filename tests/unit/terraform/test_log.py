from provision.settings.masking import Veil
from provision.terraform.log import Log

_OUTPUT = """\
  + resource "google_compute_instance_template" "gpu" {
      + metadata     = {
          + "startup-script" = <<-EOT
                #!/bin/bash
                echo one
            EOT
          + "user-data"      = "short"
        }
      ~ dashboard_json = jsonencode(
          ~ {
              + tiles = [
                  + (known after apply)
                ]
            }
        )
      + name         = "np"
    }
"""
_FOLDED = """\
  + resource "google_compute_instance_template" "gpu" {
      + metadata     = {
          + "startup-script" = <<-EOT ... EOT (2 lines, in the log)
          + "user-data"      = "short"
        }
      ~ dashboard_json = jsonencode( ... ) (5 lines, in the log)
      + name         = "np"
    }
"""


def _logged(*parts: str, full: bool) -> tuple[str, str]:
    """What is shown and what is kept of an output that comes in parts."""
    shown: list[str] = []
    log = Log(shown.append if full else None, Veil())
    for part in parts:
        log.write(part.encode())
    log.end()
    return "".join(shown), log.text


def test_the_log_has_all_of_it_and_the_terminal_nothing() -> None:
    assert _logged(_OUTPUT, full=False) == ("", _OUTPUT)


def test_payloads_and_dashboards_are_one_line_on_the_terminal_however_they_come() -> None:
    assert _logged(_OUTPUT, full=True) == (_FOLDED, _OUTPUT)
    assert _logged(*_OUTPUT, full=True) == (_FOLDED, _OUTPUT)


def test_colours_hide_no_payload_and_are_not_kept() -> None:
    coloured = _OUTPUT.replace("+", "\x1b[32m+\x1b[0m\x1b[0m")
    shown, kept = _logged(coloured, full=True)
    assert "echo one" not in shown
    assert "tiles" not in shown
    assert kept == _OUTPUT


def test_a_line_without_end_is_cut_on_the_terminal() -> None:
    line = "      + payload = " + 5000 * "A" + "\n"
    shown, kept = _logged(line, full=True)
    assert shown.endswith("... (5,018 characters, whole in the log)\n")
    assert len(shown) < 500
    assert kept == line
